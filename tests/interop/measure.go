// What a pending task costs: the memory of a Redis before and after asynq put many equal ones into it.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

func runMeasure(args []string) error {
	set, uri := flags("measure")
	tasks := set.Int("tasks", 100_000, "how many")
	size := set.Int("payload-bytes", 100, "bytes of each payload")
	queue := set.String("queue", "default", "their queue")
	typeName := set.String("type", "email:send", "their type")
	at, err := parse(set, uri, args)
	if err != nil {
		return err
	}
	raw, err := rawClient(at)
	if err != nil {
		return err
	}
	defer raw.Close()
	ctx := context.Background()
	if n, err := raw.DBSize(ctx).Result(); err != nil || n > 0 {
		return errors.Join(err, fmt.Errorf("expected an empty database, got %d keys", n))
	}
	client := asynq.NewClient(at)
	defer client.Close()
	task := asynq.NewTask(*typeName, bytes.Repeat([]byte("x"), *size), asynq.Queue(*queue))
	before, err := warm(ctx, at, raw, client, task)
	if err != nil {
		return err
	}
	if err := fill(client, task, *tasks); err != nil {
		return err
	}
	after, err := usedMemory(ctx, raw)
	if err != nil {
		return err
	}
	report, err := shares(ctx, raw, *queue, *tasks)
	if err != nil {
		return err
	}
	perTask := float64(after-before) / float64(*tasks)
	report["used_memory_per_task"] = perTask
	report["other_per_task"] = perTask - report["hash_per_task"].(float64) - report["list_per_task"].(float64)
	report["tasks"] = *tasks
	report["payload_bytes"] = *size
	emit(report)
	return nil
}

// warm pays what is paid once (connections, scripts, the queue's name), and then reads the memory in use.
func warm(ctx context.Context, at asynq.RedisConnOpt, raw redis.UniversalClient, client *asynq.Client, task *asynq.Task) (int64, error) {
	if err := fill(client, task, producers); err != nil {
		return 0, err
	}
	inspector := asynq.NewInspector(at)
	defer inspector.Close()
	names, err := inspector.Queues()
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		if _, err := inspector.DeleteAllPendingTasks(name); err != nil {
			return 0, err
		}
	}
	return usedMemory(ctx, raw)
}

// producers is how many connections fill the queue at once.
const producers = 8

func fill(client *asynq.Client, task *asynq.Task, n int) error {
	errs := make([]error, producers)
	var all sync.WaitGroup
	for p := range producers {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := p; i < n && errs[p] == nil; i += producers {
				_, errs[p] = client.Enqueue(task)
			}
		}()
	}
	all.Wait()
	return errors.Join(errs...)
}

func usedMemory(ctx context.Context, raw redis.UniversalClient) (int64, error) {
	info, err := raw.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(info, "\r\n") {
		if value, ok := strings.CutPrefix(line, "used_memory:"); ok {
			return strconv.ParseInt(value, 10, 64)
		}
	}
	return 0, errors.New("expected used_memory in the info of the server, got none")
}

// shares splits the cost by MEMORY USAGE: the task's hash, and its part of the list.
func shares(ctx context.Context, raw redis.UniversalClient, queue string, tasks int) (object, error) {
	pending := "asynq:{" + queue + "}:pending"
	list, err := raw.MemoryUsage(ctx, pending, 0).Result()
	if err != nil {
		return nil, err
	}
	const sample = 1000
	ids, err := raw.LRange(ctx, pending, 0, sample-1).Result()
	if err != nil {
		return nil, err
	}
	var hashes, messages int64
	for _, id := range ids {
		key := "asynq:{" + queue + "}:t:" + id
		n, err := raw.MemoryUsage(ctx, key, 0).Result()
		if err != nil {
			return nil, err
		}
		msg, err := raw.HGet(ctx, key, "msg").Bytes()
		if err != nil {
			return nil, err
		}
		hashes += n
		messages += int64(len(msg))
	}
	return object{
		"hash_per_task":    float64(hashes) / float64(len(ids)),
		"message_per_task": float64(messages) / float64(len(ids)),
		"list_per_task":    float64(list) / float64(tasks),
	}, nil
}
