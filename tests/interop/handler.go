// Handlers that do what the payload says, and tell the driver about each attempt.

package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

// An order is the part of a payload that handlers obey. A payload that is no such JSON is an order to succeed.
type order struct {
	Do           string  `json:"do"`            // ok (default), sleep (the same), wait, fail, skip_retry, revoke
	Ms           int64   `json:"ms"`            // first of all, take this long
	Deaf         bool    `json:"deaf"`          // do not return when the context ends
	FailFirst    int     `json:"fail_first"`    // fail while fewer retries than this were used
	Error        *string `json:"error"`         // the text of the failure
	ErrorBase64  string  `json:"error_base64"`  // the same for text that is no UTF-8
	Unfailing    bool    `json:"unfailing"`     // the error is none for `--is-failure marked`
	Panic        bool    `json:"panic"`         // panic instead of returning
	Result       *string `json:"result"`        // written before the end
	ResultBase64 *string `json:"result_base64"` // the same, any bytes
}

// An unfailing error is one that the driver marked as no failure.
type unfailing struct{ error }

// Invariant: nothing of a handler is told before ready is closed, so that the line "ready" comes first.
type handler struct {
	name  string
	gate  *gate
	ready chan struct{}
	runs  atomic.Int64
}

// around prints a line as an attempt starts and as it ends, also for types that nobody handles.
func (h *handler) around(next asynq.Handler) asynq.Handler {
	return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) (err error) {
		<-h.ready
		began := time.Now()
		run := h.runs.Add(1)
		about := func(event string) object { return h.about(ctx, event).with(object{"run": run, "type": task.Type()}) }
		start := about("start")
		start.putBytes("payload", task.Payload())
		if headers := task.Headers(); headers != nil {
			start["headers"] = headers
		}
		if deadline, ok := ctx.Deadline(); ok {
			start.putTime("deadline", deadline)
		}
		emit(start)
		returned := false
		defer func() {
			end := about("end").with(object{"outcome": outcome(returned, err), "took_ms": time.Since(began).Milliseconds()})
			if err != nil {
				end["error"] = err.Error()
			}
			emit(end)
		}()
		err = next.ProcessTask(ctx, task)
		returned = true
		return err
	})
}

func outcome(returned bool, err error) string {
	switch {
	case !returned:
		return "panic"
	case errors.Is(err, asynq.SkipRetry):
		return "skip_retry"
	case errors.Is(err, asynq.RevokeTask):
		return "revoke"
	case err != nil:
		return "fail"
	default:
		return "ok"
	}
}

// about has what every line on an attempt says.
func (h *handler) about(ctx context.Context, event string) object {
	id, _ := asynq.GetTaskID(ctx)
	queue, _ := asynq.GetQueueName(ctx)
	retried, _ := asynq.GetRetryCount(ctx)
	maxRetry, _ := asynq.GetMaxRetry(ctx)
	return object{
		"event": event, "id": id, "queue": queue, "retried": retried, "max_retry": maxRetry,
		"name": h.name, "pid": os.Getpid(), "now_ms": time.Now().UnixMilli(),
	}
}

// HandleError tells what asynq takes as the attempt's failure: the handler's error, or its own words for a context
// that ended or a lease that was lost. The handler may still be running then.
func (h *handler) HandleError(ctx context.Context, task *asynq.Task, err error) {
	<-h.ready
	emit(h.about(ctx, "failed").with(object{"type": task.Type(), "error": err.Error()}))
}

// ProcessTask obeys the order in the payload.
func (h *handler) ProcessTask(ctx context.Context, task *asynq.Task) error {
	var o order
	if json.Unmarshal(task.Payload(), &o) != nil {
		o = order{}
	}
	if err := h.pause(ctx, &o); err != nil {
		return err
	}
	result, err := payload(o.Result, o.ResultBase64, nil)
	if err != nil {
		return fmt.Errorf("result_base64: %w", err)
	}
	if result != nil {
		if _, err := task.ResultWriter().Write(result); err != nil {
			return err
		}
	}
	retried, _ := asynq.GetRetryCount(ctx)
	return o.end(retried)
}

// pause takes the time that the order asks for, and ends early with the context unless it is deaf.
func (h *handler) pause(ctx context.Context, o *order) error {
	stop := ctx.Done()
	if o.Deaf {
		stop = nil
	}
	if o.Ms > 0 {
		select {
		case <-time.After(time.Duration(o.Ms) * time.Millisecond):
		case <-stop:
			return ctx.Err()
		}
	}
	if o.Do == "wait" {
		id, _ := asynq.GetTaskID(ctx)
		select {
		case <-h.gate.wait(id):
		case <-stop:
			return ctx.Err()
		}
	}
	return nil
}

func (o *order) end(retried int) error {
	if o.Panic {
		panic(o.text())
	}
	if retried < o.FailFirst {
		return o.failed(nil)
	}
	switch o.Do {
	case "", "ok", "sleep", "wait":
		return nil
	case "fail":
		return o.failed(nil)
	case "skip_retry":
		return o.failed(asynq.SkipRetry)
	case "revoke":
		return o.failed(asynq.RevokeTask)
	default:
		return fmt.Errorf("unknown order %q: %w", o.Do, asynq.SkipRetry)
	}
}

func (o *order) failed(class error) error {
	err := errors.New(o.text())
	if class != nil {
		err = fmt.Errorf("%s: %w", o.text(), class)
	}
	if o.Unfailing {
		return unfailing{err}
	}
	return err
}

func (o *order) text() string {
	if raw, err := base64.StdEncoding.DecodeString(o.ErrorBase64); err == nil && len(raw) > 0 {
		return string(raw)
	}
	if o.Error != nil {
		return *o.Error
	}
	return "told to fail"
}

// Unwrap lets asynq see a skip or a revoke below the mark.
func (u unfailing) Unwrap() error { return u.error }

// aggregate makes one task of a group: its payload lists the members' payloads, and its handler succeeds.
func (h *handler) aggregate(typeName string) asynq.GroupAggregatorFunc {
	return func(group string, tasks []*asynq.Task) *asynq.Task {
		<-h.ready
		members := make([]object, 0, len(tasks))
		for _, t := range tasks {
			member := object{"type": t.Type()}
			member.putBytes("payload", t.Payload())
			members = append(members, member)
		}
		body, err := json.Marshal(object{"group": group, "members": members})
		if err != nil {
			panic(fmt.Sprintf("members that cannot be written as JSON: %v", err))
		}
		emit(object{"event": "aggregate", "group": group, "count": len(tasks), "name": h.name, "pid": os.Getpid()})
		return asynq.NewTask(typeName, body)
	}
}
