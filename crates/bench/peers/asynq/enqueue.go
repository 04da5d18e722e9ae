// A producer: enqueues, and awaits every answer.

package main

import (
	"sync"
	"time"

	"github.com/hibiken/asynq"
)

const (
	callers = 50
	batch   = 100
)

func enqueue(o options) error {
	client := asynq.NewClient(o.redis)
	defer client.Close()
	if err := client.Ping(); err != nil {
		return err
	}
	if err := ready(); err != nil {
		return err
	}
	began := time.Now()
	var err error
	switch o.shape {
	case "callers":
		err = together(client, callers, o.tasks)
	case "batches":
		err = batches(client, o.tasks)
	default:
		err = together(client, 1, o.tasks)
	}
	if err != nil {
		return err
	}
	done(time.Since(began))
	untilEnd()
	return nil
}

func send(client *asynq.Client, bytes []byte) error {
	_, err := client.Enqueue(asynq.NewTask(taskType, bytes), asynq.Queue(queueName))
	return err
}

// together has so many goroutines send the tasks, one at a time each.
func together(client *asynq.Client, goroutines, tasks int) error {
	errs := make(chan error, goroutines)
	for caller := range goroutines {
		go func() {
			bytes := payload()
			for number := caller; number < tasks; number += goroutines {
				if err := send(client, bytes); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	var first error
	for range goroutines {
		if err := <-errs; err != nil {
			first = err
		}
	}
	return first
}

// batches does what a program can that has a hundred tasks at hand: asynq 0.26 has no call for many tasks, so a
// hundred calls are made at once and awaited together.
func batches(client *asynq.Client, tasks int) error {
	bytes := payload()
	for sent := 0; sent < tasks; sent += batch {
		size := min(batch, tasks-sent)
		errs := make([]error, size)
		var all sync.WaitGroup
		for i := range size {
			all.Add(1)
			go func() {
				defer all.Done()
				errs[i] = send(client, bytes)
			}()
		}
		all.Wait()
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
	}
	return nil
}
