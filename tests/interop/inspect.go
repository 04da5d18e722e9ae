// The inspector: one call a line in, one answer a line out.

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"

	"github.com/hibiken/asynq"
)

// A call names a method of asynq's Inspector by its op; the other fields are that method's arguments.
type call struct {
	Op            string          `json:"op"`
	Queue         string          `json:"queue"`
	ID            string          `json:"id"`
	State         string          `json:"state"`
	Group         string          `json:"group"`
	Page          *int            `json:"page"`
	Size          *int            `json:"size"`
	Days          int             `json:"days"`
	Force         bool            `json:"force"`
	Payload       *string         `json:"payload"`
	PayloadBase64 *string         `json:"payload_base64"`
	PayloadJSON   json.RawMessage `json:"payload_json"`
}

// paging passes on only what is given, so that asynq's own defaults hold.
func (c *call) paging() []asynq.ListOption {
	var opts []asynq.ListOption
	if c.Page != nil {
		opts = append(opts, asynq.Page(*c.Page))
	}
	if c.Size != nil {
		opts = append(opts, asynq.PageSize(*c.Size))
	}
	return opts
}

func runInspect(args []string) error {
	set, uri := flags("inspect")
	at, err := parse(set, uri, args)
	if err != nil {
		return err
	}
	inspector := asynq.NewInspector(at)
	defer inspector.Close()
	return eachLine(os.Stdin, func(line []byte) error {
		var c call
		if err := decodeStrictly(line, &c); err != nil {
			emit(failure(badLine{err}))
			return nil
		}
		result, err := c.ask(inspector)
		if err != nil {
			emit(failure(err).with(object{"op": c.Op}))
			return nil
		}
		emit(object{"op": c.Op, "result": result})
		return nil
	})
}

// ask makes the call. A panic in asynq is an answer, too: there is stored data that makes it panic.
func (c *call) ask(i *asynq.Inspector) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	for _, ops := range []map[string]op{queueOps, taskOps, overviewOps} {
		if f, ok := ops[c.Op]; ok {
			return f(i, c)
		}
	}
	return nil, badLine{fmt.Errorf("unknown op %q, expected one of %v", c.Op, opNames())}
}

type op func(*asynq.Inspector, *call) (any, error)

func opNames() []string {
	var names []string
	for _, ops := range []map[string]op{queueOps, taskOps, overviewOps} {
		for name := range ops {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

var queueOps = map[string]op{
	"queues":  func(i *asynq.Inspector, _ *call) (any, error) { return sorted(i.Queues()) },
	"groups":  groups,
	"queue":   queueInfo,
	"history": history,
	"pause":   func(i *asynq.Inspector, c *call) (any, error) { return true, i.PauseQueue(c.Queue) },
	"unpause": func(i *asynq.Inspector, c *call) (any, error) { return true, i.UnpauseQueue(c.Queue) },
	"delete_queue": func(i *asynq.Inspector, c *call) (any, error) {
		return true, i.DeleteQueue(c.Queue, c.Force)
	},
	"cluster_key_slot": func(i *asynq.Inspector, c *call) (any, error) { return i.ClusterKeySlot(c.Queue) },
	"cluster_nodes":    clusterNodes,
}

func sorted(names []string, err error) (any, error) {
	sort.Strings(names)
	return names, err
}

func groups(i *asynq.Inspector, c *call) (any, error) {
	infos, err := i.Groups(c.Queue)
	if err != nil {
		return nil, err
	}
	sizes := object{}
	for _, g := range infos {
		sizes[g.Group] = g.Size
	}
	return sizes, nil
}

func queueInfo(i *asynq.Inspector, c *call) (any, error) {
	q, err := i.GetQueueInfo(c.Queue)
	if err != nil {
		return nil, err
	}
	o := object{
		"queue": q.Queue, "paused": q.Paused, "size": q.Size, "groups": q.Groups,
		"pending": q.Pending, "active": q.Active, "scheduled": q.Scheduled, "retry": q.Retry,
		"archived": q.Archived, "completed": q.Completed, "aggregating": q.Aggregating,
		"processed": q.Processed, "failed": q.Failed,
		"processed_total": q.ProcessedTotal, "failed_total": q.FailedTotal,
		"latency_ms": q.Latency.Milliseconds(), "memory_usage_bytes": q.MemoryUsage,
	}
	o.putTime("taken", q.Timestamp)
	return o, nil
}

func history(i *asynq.Inspector, c *call) (any, error) {
	stats, err := i.History(c.Queue, c.Days)
	if err != nil {
		return nil, err
	}
	days := make([]object, 0, len(stats))
	for _, d := range stats {
		days = append(days, object{
			"queue": d.Queue, "date": d.Date.UTC().Format("2006-01-02"), "processed": d.Processed, "failed": d.Failed,
		})
	}
	return days, nil
}

func clusterNodes(i *asynq.Inspector, c *call) (any, error) {
	nodes, err := i.ClusterNodes(c.Queue)
	if err != nil {
		return nil, err
	}
	out := make([]object, 0, len(nodes))
	for _, n := range nodes {
		out = append(out, object{"id": n.ID, "address": n.Addr})
	}
	return out, nil
}
