// Workers that have nothing to do: six servers over eleven queues, as the preset of Poolwright has six pools.

package main

import (
	"context"

	"github.com/hibiken/asynq"
)

type pool struct {
	workers int
	queues  map[string]int
}

var pools = []pool{
	{8, map[string]int{"default": 1, "chat_attachment": 3}},
	{2, map[string]int{"postprocess": 1}},
	{12, map[string]int{"summary": 2, "multimodal": 1, "graph": 1, "question": 1, "memory": 1}},
	{4, map[string]int{"sync": 2, "low": 1}},
	{6, map[string]int{"default": 3, "chat_attachment": 3, "summary": 2, "multimodal": 1, "graph": 1, "question": 1, "memory": 1}},
	{8, map[string]int{"wiki": 1}},
}

func idle(o options) error {
	handler := asynq.HandlerFunc(func(context.Context, *asynq.Task) error { return nil })
	if err := ready(); err != nil {
		return err
	}
	for _, pool := range pools {
		srv := server(o, pool.queues, pool.workers)
		if err := srv.Start(handler); err != nil {
			return err
		}
		defer srv.Shutdown()
	}
	say("started")
	untilEnd()
	return nil
}
