// The inspector's calls on servers and schedulers.

package main

import (
	"sort"

	"github.com/hibiken/asynq"
)

var overviewOps = map[string]op{
	"servers":           servers,
	"scheduler_entries": schedulerEntries,
	"enqueue_events":    enqueueEvents,
}

// servers come in no order from asynq; here they are sorted by id, their workers by task.
func servers(i *asynq.Inspector, _ *call) (any, error) {
	infos, err := i.Servers()
	if err != nil {
		return nil, err
	}
	sort.Slice(infos, func(a, b int) bool { return infos[a].ID < infos[b].ID })
	out := make([]object, 0, len(infos))
	for _, s := range infos {
		o := object{
			"id": s.ID, "host": s.Host, "pid": s.PID, "concurrency": s.Concurrency, "queues": s.Queues,
			"strict": s.StrictPriority, "status": s.Status, "workers": workers(s.ActiveWorkers),
		}
		o.putTime("started", s.Started)
		out = append(out, o)
	}
	return out, nil
}

func workers(infos []*asynq.WorkerInfo) []object {
	sort.Slice(infos, func(a, b int) bool { return infos[a].TaskID < infos[b].TaskID })
	out := make([]object, 0, len(infos))
	for _, w := range infos {
		o := object{"id": w.TaskID, "type": w.TaskType, "queue": w.Queue}
		o.putBytes("payload", w.TaskPayload)
		o.putTime("started", w.Started)
		o.putTime("deadline", w.Deadline)
		out = append(out, o)
	}
	return out
}

func schedulerEntries(i *asynq.Inspector, _ *call) (any, error) {
	entries, err := i.SchedulerEntries()
	if err != nil {
		return nil, err
	}
	out := make([]object, 0, len(entries))
	for _, e := range entries {
		options := make([]string, 0, len(e.Opts))
		for _, opt := range e.Opts {
			options = append(options, opt.String())
		}
		o := object{"id": e.ID, "spec": e.Spec, "type": e.Task.Type(), "options": options}
		o.putBytes("payload", e.Task.Payload())
		o.putTime("next", e.Next)
		o.putTime("previous", e.Prev)
		out = append(out, o)
	}
	return out, nil
}

// enqueueEvents takes the entry's id as id.
func enqueueEvents(i *asynq.Inspector, c *call) (any, error) {
	events, err := i.ListSchedulerEnqueueEvents(c.ID, c.paging()...)
	if err != nil {
		return nil, err
	}
	out := make([]object, 0, len(events))
	for _, e := range events {
		o := object{"id": e.TaskID}
		o.putTime("enqueued", e.EnqueuedAt)
		out = append(out, o)
	}
	return out, nil
}
