// A worker: asynq's server with one queue, and a handler that does nothing.

package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

// server is asynq's with its defaults but for the queues, the concurrency and the log.
func server(o options, queues map[string]int, concurrency int) *asynq.Server {
	return asynq.NewServer(o.redis, asynq.Config{
		Concurrency: concurrency,
		Queues:      queues,
		LogLevel:    asynq.FatalLevel,
	})
}

func work(o options) error {
	var late lateness
	if o.late != "" {
		late = newLateness(o.tasks)
	}
	var handled atomic.Int64
	last := make(chan struct{})
	handler := asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		if late != nil {
			late.note(task.Payload())
		}
		if handled.Add(1) == int64(o.tasks) {
			close(last)
		}
		return nil
	})
	srv := server(o, map[string]int{queueName: 1}, o.workers)
	if err := ready(); err != nil {
		return err
	}
	began := time.Now()
	if err := srv.Start(handler); err != nil {
		return err
	}
	say("started")
	<-last
	took := time.Since(began)
	if late != nil {
		if err := late.write(o.late); err != nil {
			return err
		}
	}
	done(took)
	untilEnd()
	srv.Shutdown()
	return nil
}
