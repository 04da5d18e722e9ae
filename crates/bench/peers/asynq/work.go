// A worker: asynq's server with one queue, and a handler that does nothing.

package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

// server is asynq's with its defaults but for the queue, the concurrency and the log.
func server(o options, queues map[string]int, concurrency int) *asynq.Server {
	return asynq.NewServer(o.redis, asynq.Config{
		Concurrency: concurrency,
		Queues:      queues,
		LogLevel:    asynq.FatalLevel,
	})
}

func work(o options) error {
	var handled atomic.Int64
	last := make(chan struct{})
	goal := int64(o.tasks)
	handler := asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		if handled.Add(1) == goal {
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
	<-last
	done(time.Since(began))
	untilEnd()
	srv.Shutdown()
	return nil
}
