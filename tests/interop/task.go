// A task as a line of JSON, on its way in and on its way out.

package main

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/hibiken/asynq"
)

// taskSpec has every option of asynq. What is absent is not passed to asynq at all, so that its own defaults hold;
// what is present is passed as it is, also when asynq will refuse it.
type taskSpec struct {
	Type          string            `json:"type"`
	Payload       *string           `json:"payload"`        // text
	PayloadBase64 *string           `json:"payload_base64"` // any bytes
	PayloadJSON   json.RawMessage   `json:"payload_json"`   // any JSON, its text taken as it stands
	Headers       map[string]string `json:"headers"`
	Queue         *string           `json:"queue"`
	ID            *string           `json:"id"`
	MaxRetry      *int              `json:"max_retry"`
	TimeoutMs     *int64            `json:"timeout_ms"`
	DeadlineMs    *int64            `json:"deadline_ms"`   // since 1970
	ProcessAtMs   *int64            `json:"process_at_ms"` // since 1970
	ProcessInMs   *int64            `json:"process_in_ms"`
	UniqueMs      *int64            `json:"unique_ms"`
	RetentionMs   *int64            `json:"retention_ms"`
	Group         *string           `json:"group"`
}

// task makes the task without options.
func (s *taskSpec) task() (*asynq.Task, error) {
	body, err := payload(s.Payload, s.PayloadBase64, s.PayloadJSON)
	if err != nil {
		return nil, err
	}
	return asynq.NewTaskWithHeaders(s.Type, body, s.Headers), nil
}

func (s *taskSpec) options() []asynq.Option {
	var opts []asynq.Option
	text := func(value *string, option func(string) asynq.Option) {
		if value != nil {
			opts = append(opts, option(*value))
		}
	}
	span := func(value *int64, option func(time.Duration) asynq.Option) {
		if value != nil {
			opts = append(opts, option(time.Duration(*value)*time.Millisecond))
		}
	}
	moment := func(value *int64, option func(time.Time) asynq.Option) {
		if value != nil {
			opts = append(opts, option(time.UnixMilli(*value).UTC()))
		}
	}
	text(s.Queue, asynq.Queue)
	text(s.ID, asynq.TaskID)
	text(s.Group, asynq.Group)
	if s.MaxRetry != nil {
		opts = append(opts, asynq.MaxRetry(*s.MaxRetry))
	}
	span(s.TimeoutMs, asynq.Timeout)
	moment(s.DeadlineMs, asynq.Deadline)
	moment(s.ProcessAtMs, asynq.ProcessAt)
	span(s.ProcessInMs, asynq.ProcessIn)
	span(s.UniqueMs, asynq.Unique)
	span(s.RetentionMs, asynq.Retention)
	return opts
}

// enqueue reads a line and hands the task to asynq.
func enqueue(client *asynq.Client, line []byte) (*asynq.TaskInfo, error) {
	var spec taskSpec
	if err := decodeStrictly(line, &spec); err != nil {
		return nil, badLine{err}
	}
	task, err := spec.task()
	if err != nil {
		return nil, badLine{err}
	}
	return client.Enqueue(task, spec.options()...)
}

// A badLine is the driver's mistake, not an answer of asynq.
type badLine struct{ error }

// failure says what went wrong, in a word to branch on and in asynq's own text.
func failure(err error) object {
	return object{"error": err.Error(), "kind": kindOf(err)}
}

func kindOf(err error) string {
	var bad badLine
	switch {
	case errors.As(err, &bad):
		return "line"
	case errors.Is(err, asynq.ErrDuplicateTask):
		return "duplicate"
	case errors.Is(err, asynq.ErrTaskIDConflict):
		return "conflict"
	case errors.Is(err, asynq.ErrQueueNotFound):
		return "queue_not_found"
	case errors.Is(err, asynq.ErrQueueNotEmpty):
		return "queue_not_empty"
	case errors.Is(err, asynq.ErrTaskNotFound):
		return "task_not_found"
	default:
		return "other"
	}
}

// taskView shows everything that asynq tells about a task.
func taskView(t *asynq.TaskInfo) object {
	o := object{
		"id":           t.ID,
		"queue":        t.Queue,
		"type":         t.Type,
		"state":        t.State.String(),
		"max_retry":    t.MaxRetry,
		"retried":      t.Retried,
		"last_error":   t.LastErr,
		"timeout_ms":   t.Timeout.Milliseconds(),
		"retention_ms": t.Retention.Milliseconds(),
		"group":        t.Group,
		"orphaned":     t.IsOrphaned,
	}
	o.putBytes("payload", t.Payload)
	if t.Headers != nil {
		o["headers"] = t.Headers
	}
	if t.Result != nil {
		o.putBytes("result", t.Result)
	}
	o.putTime("last_failed", t.LastFailedAt)
	o.putTime("deadline", t.Deadline)
	o.putTime("next_process", t.NextProcessAt)
	o.putTime("completed", t.CompletedAt)
	return o
}

func taskViews(tasks []*asynq.TaskInfo) []object {
	views := make([]object, 0, len(tasks))
	for _, t := range tasks {
		views = append(views, taskView(t))
	}
	return views
}
