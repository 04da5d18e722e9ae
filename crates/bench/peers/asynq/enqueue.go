// A producer: enqueues, and awaits every answer.

package main

import (
	"sync"

	"github.com/hibiken/asynq"
)

const (
	callers = 50
	batch   = 100
)

func enqueue(o options) error {
	return producing(o, func(client *asynq.Client) error {
		bytes := payload()
		one := func(int) error { return send(client, bytes) }
		switch o.shape {
		case "callers":
			return shared(callers, o.tasks, one)
		case "batches":
			return batches(o.tasks, one)
		default:
			return shared(1, o.tasks, one)
		}
	})
}

func send(client *asynq.Client, bytes []byte, opts ...asynq.Option) error {
	_, err := client.Enqueue(asynq.NewTask(taskType, bytes), append(opts, asynq.Queue(queueName))...)
	return err
}

// shared has so many goroutines do the work, one after the other each.
func shared(goroutines, tasks int, work func(number int) error) error {
	errs := make([]error, goroutines)
	var all sync.WaitGroup
	for caller := range goroutines {
		all.Add(1)
		go func() {
			defer all.Done()
			for number := caller; number < tasks && errs[caller] == nil; number += goroutines {
				errs[caller] = work(number)
			}
		}()
	}
	all.Wait()
	return firstOf(errs)
}

// batches does what a program can that has a hundred tasks at hand: asynq 0.26 has no call for many tasks, so a
// hundred calls are made at once and awaited together.
func batches(tasks int, work func(number int) error) error {
	for first := 0; first < tasks; first += batch {
		size := min(batch, tasks-first)
		if err := shared(size, size, work); err != nil {
			return err
		}
	}
	return nil
}

func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
