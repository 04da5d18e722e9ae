// The scheduler: entries come by lines, each firing is told, and the end of standard input stops it.

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hibiken/asynq"
)

// A scheduleLine registers a task under a cron spec, or takes an entry away again.
type scheduleLine struct {
	Spec       string          `json:"spec"`
	Task       json.RawMessage `json:"task"`
	Unregister string          `json:"unregister"`
}

func runSchedule(args []string) error {
	set, uri := flags("schedule")
	location := set.String("location", "", "time zone of the specs (asynq: UTC)")
	heartbeat := set.Duration("heartbeat", 0, "between snapshots of the entries (asynq: 10s)")
	var logLevel asynq.LogLevel
	logLevelFlag(set, &logLevel)
	at, err := parse(set, uri, args)
	if err != nil {
		return err
	}
	opts := &asynq.SchedulerOpts{HeartbeatInterval: *heartbeat, LogLevel: logLevel, PostEnqueueFunc: tellEnqueued}
	if *location != "" {
		if opts.Location, err = time.LoadLocation(*location); err != nil {
			return err
		}
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	scheduler := asynq.NewScheduler(at, opts)
	if err := scheduler.Start(); err != nil {
		return err
	}
	emit(object{"event": "ready", "pid": os.Getpid()})
	ended := make(chan error, 1)
	go func() {
		ended <- eachLine(os.Stdin, func(line []byte) error {
			emit(scheduleOne(scheduler, line))
			return nil
		})
	}()
	select {
	case <-signals:
	case err = <-ended:
	}
	scheduler.Shutdown()
	if err == nil {
		emit(object{"event": "stopped", "pid": os.Getpid()})
	}
	return err
}

func scheduleOne(scheduler *asynq.Scheduler, line []byte) object {
	entry, event, err := scheduleLineOf(scheduler, line)
	if err != nil {
		return failure(err).with(object{"event": "error"})
	}
	return object{"event": event, "entry": entry}
}

func scheduleLineOf(scheduler *asynq.Scheduler, line []byte) (entry, event string, err error) {
	var s scheduleLine
	if err := decodeStrictly(line, &s); err != nil {
		return "", "", badLine{err}
	}
	if s.Unregister != "" {
		return s.Unregister, "unregistered", scheduler.Unregister(s.Unregister)
	}
	if s.Task == nil {
		return "", "", badLine{errors.New("expected a task or unregister")}
	}
	var spec taskSpec
	if err := decodeStrictly(s.Task, &spec); err != nil {
		return "", "", badLine{fmt.Errorf("task: %w", err)}
	}
	task, err := spec.task()
	if err != nil {
		return "", "", badLine{err}
	}
	entry, err = scheduler.Register(s.Spec, task, spec.options()...)
	return entry, "registered", err
}

func tellEnqueued(info *asynq.TaskInfo, err error) {
	if err != nil {
		emit(failure(err).with(object{"event": "not_enqueued"}))
		return
	}
	emit(object{"event": "enqueued", "task": taskView(info), "now_ms": time.Now().UnixMilli()})
}
