// Runs many tasks at once that wait for a word before they end.

package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/hibiken/asynq"
)

// Between two handlers that are let go: quick enough to be busy, slow enough that they end in this order.
const letGo = 500 * time.Microsecond

func hold(o options) error {
	arrived := make(chan chan struct{}, o.workers)
	handler := asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		gate := make(chan struct{})
		arrived <- gate
		<-gate
		return nil
	})
	srv := server(o, map[string]int{queueName: 1}, o.workers)
	if err := ready(); err != nil {
		return err
	}
	if err := srv.Start(handler); err != nil {
		return err
	}
	gates := make([]chan struct{}, o.workers)
	for i := range gates {
		gates[i] = <-arrived
	}
	say("held")
	input.Scan()
	if o.order == "random" {
		rand.Shuffle(len(gates), func(i, j int) { gates[i], gates[j] = gates[j], gates[i] })
	}
	began := time.Now()
	for _, gate := range gates[:o.tasks] {
		close(gate)
		time.Sleep(letGo)
	}
	done(time.Since(began))
	untilEnd()
	for _, gate := range gates[o.tasks:] {
		close(gate)
	}
	srv.Shutdown()
	return nil
}
