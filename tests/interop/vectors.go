// Golden bytes: what asynq itself writes for a task, read back from where it put it.
//
// Nothing in a vector depends on when it was made, if the task's times are given as times and not as spans.

package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"sort"
	"strconv"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

func runVectors(args []string) error {
	set, uri := flags("vectors")
	at, err := parse(set, uri, args)
	if err != nil {
		return err
	}
	client := asynq.NewClient(at)
	defer client.Close()
	raw, err := rawClient(at)
	if err != nil {
		return err
	}
	defer raw.Close()
	return eachLine(os.Stdin, func(line []byte) error {
		info, err := enqueue(client, line)
		if err != nil {
			emit(failure(err))
			return nil
		}
		vector, err := vectorOf(context.Background(), raw, info)
		if err != nil {
			return fmt.Errorf("task %q: %w", info.ID, err)
		}
		emit(vector)
		return nil
	})
}

// vectorOf reads the hash, its place and its lock.
func vectorOf(ctx context.Context, raw redis.UniversalClient, info *asynq.TaskInfo) (object, error) {
	queueKey := "asynq:{" + info.Queue + "}:"
	taskKey := queueKey + "t:" + info.ID
	hash, err := raw.HGetAll(ctx, taskKey).Result()
	if err != nil {
		return nil, err
	}
	fields := make([]string, 0, len(hash))
	for name := range hash {
		fields = append(fields, name)
	}
	sort.Strings(fields)
	vector := object{
		"id": info.ID, "queue": info.Queue, "state": info.State.String(),
		"key": taskKey, "msg": hex.EncodeToString([]byte(hash["msg"])), "fields": fields,
	}
	for _, name := range []string{"group", "unique_key"} {
		if value, ok := hash[name]; ok {
			vector[name] = value
		}
	}
	if info.State == asynq.TaskStateScheduled {
		score, err := raw.ZScore(ctx, queueKey+"scheduled", info.ID).Result()
		if err != nil {
			return nil, err
		}
		vector["score"] = strconv.FormatFloat(score, 'f', -1, 64)
	}
	return vector, nil
}
