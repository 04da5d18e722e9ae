// The consumer: an asynq server, its settings by flags, its doings as lines.

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hibiken/asynq"
)

// workOptions are asynq's own settings under names with units; zero means asynq's default everywhere.
type workOptions struct {
	queues, name, types, retryDelay, isFailure, groupType string
	strict, untilEOF                                      bool
	logLevel                                              asynq.LogLevel
	config                                                asynq.Config
}

func (w *workOptions) register(set *flag.FlagSet) {
	c := &w.config
	set.StringVar(&w.queues, "queues", "default=1", "queues with priorities, as a=3,b=1")
	set.IntVar(&c.Concurrency, "concurrency", 10, "tasks at once")
	set.BoolVar(&w.strict, "strict", false, "a queue of lower priority waits until the higher ones are empty")
	set.StringVar(&w.name, "name", "", "a name for this worker, repeated in every line of an attempt")
	set.StringVar(&w.types, "types", "", "type patterns it has handlers for, as a:,b:c; none: all types")
	set.StringVar(&w.retryDelay, "retry-delay", "", "a fixed delay as 250ms; none: asynq's own function")
	set.StringVar(&w.isFailure, "is-failure", "all", "which errors count as failures: all, none, or marked (those not unfailing)")
	set.DurationVar(&c.ShutdownTimeout, "shutdown-timeout", 0, "time for handlers at the end (asynq: 8s)")
	set.DurationVar(&c.TaskCheckInterval, "task-check-interval", 0, "sleep when all queues are empty (asynq: 1s)")
	set.DurationVar(&c.DelayedTaskCheckInterval, "delayed-check-interval", 0, "between looks at scheduled and retry (asynq: 5s)")
	set.DurationVar(&c.JanitorInterval, "janitor-interval", 0, "between sweeps of completed tasks (asynq: 8s)")
	set.IntVar(&c.JanitorBatchSize, "janitor-batch", 0, "tasks a sweep (asynq: 100)")
	set.StringVar(&w.groupType, "group-type", "", "aggregate groups into tasks of this type; none: do not aggregate")
	set.DurationVar(&c.GroupGracePeriod, "group-grace", 0, "quiet time before a group is taken (asynq: 1m, at least 1s)")
	set.DurationVar(&c.GroupMaxDelay, "group-max-delay", 0, "longest wait of a group's first task")
	set.IntVar(&c.GroupMaxSize, "group-max-size", 0, "tasks that make a group full")
	logLevelFlag(set, &w.logLevel)
	set.BoolVar(&w.untilEOF, "until-eof", false, "shut down when standard input ends, as by TERM")
}

// logLevelFlag spares the flag package from printing asynq's level of nothing, at which asynq panics.
func logLevelFlag(set *flag.FlagSet, level *asynq.LogLevel) {
	*level = asynq.WarnLevel
	set.Func("log-level", "debug, info, warn, error or fatal; on standard error (default warn)", level.Set)
}

// configure turns the options into asynq's settings.
func (w *workOptions) configure(h *handler) error {
	c := &w.config
	c.StrictPriority = w.strict
	c.LogLevel = w.logLevel
	c.ErrorHandler = h
	c.Queues = map[string]int{}
	for _, item := range strings.Split(w.queues, ",") {
		name, priority, ok := cutLast(item, "=")
		if !ok {
			name, priority = item, "1"
		}
		n, err := strconv.Atoi(priority)
		if err != nil {
			return fmt.Errorf("expected queue=priority, got %q", item)
		}
		c.Queues[name] = n
	}
	if w.retryDelay != "" {
		delay, err := time.ParseDuration(w.retryDelay)
		if err != nil {
			return fmt.Errorf("--retry-delay: %w", err)
		}
		c.RetryDelayFunc = func(int, error, *asynq.Task) time.Duration { return delay }
	}
	switch w.isFailure {
	case "all":
	case "none":
		c.IsFailure = func(error) bool { return false }
	case "marked":
		c.IsFailure = func(err error) bool { return !errors.As(err, &unfailing{}) }
	default:
		return fmt.Errorf("--is-failure: expected all, none or marked, got %q", w.isFailure)
	}
	if w.groupType != "" {
		c.GroupAggregator = h.aggregate(w.groupType)
	}
	return nil
}

// cutLast splits at the last sep: queue names may have the sign in them.
func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// route gives the handler for all types, or a mux that knows only some.
func (w *workOptions) route(h *handler) asynq.Handler {
	if w.types == "" {
		return h.around(h)
	}
	mux := asynq.NewServeMux()
	mux.Use(h.around)
	for _, pattern := range strings.Split(w.types, ",") {
		mux.Handle(pattern, h)
	}
	return mux
}

func runWork(args []string) error {
	set, uri := flags("work")
	var w workOptions
	w.register(set)
	at, err := parse(set, uri, args)
	if err != nil {
		return err
	}
	h := &handler{name: w.name, gate: newGate(), ready: make(chan struct{})}
	if err := w.configure(h); err != nil {
		return err
	}
	// Before the server starts, or a signal that comes at once would end the process without a shutdown.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGTSTP)
	server := asynq.NewServer(at, w.config)
	if err := server.Start(w.route(h)); err != nil {
		return err
	}
	if err := seen(at); err != nil {
		close(h.ready)
		server.Shutdown()
		return err
	}
	emit(object{"event": "ready", "pid": os.Getpid(), "name": w.name, "concurrency": w.config.Concurrency, "queues": w.config.Queues})
	close(h.ready)
	ended := listen(h.gate)
	if !w.untilEOF {
		ended = nil
	}
	obey(server, signals, ended)
	emit(object{"event": "stopped", "pid": os.Getpid(), "name": w.name})
	return nil
}

// obey does on signals what asynq's own Run does.
func obey(server *asynq.Server, signals <-chan os.Signal, ended <-chan struct{}) {
	for {
		select {
		case s := <-signals:
			server.Stop()
			emit(object{"event": "signal", "signal": s.String(), "pid": os.Getpid()})
			if s == syscall.SIGTSTP {
				continue
			}
		case <-ended:
			server.Stop()
		}
		server.Shutdown()
		return
	}
}

// seen waits until this process is in the list of servers, as it is after the first heartbeat.
func seen(at asynq.RedisConnOpt) error {
	inspector := asynq.NewInspector(at)
	defer inspector.Close()
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	const patience = 10 * time.Second
	for began := time.Now(); time.Since(began) < patience; time.Sleep(10 * time.Millisecond) {
		servers, err := inspector.Servers()
		if err != nil {
			return err
		}
		for _, s := range servers {
			if s.PID == os.Getpid() && s.Host == host {
				return nil
			}
		}
	}
	return fmt.Errorf("no heartbeat of this server within %v", patience)
}

// listen reads {"release": ID} and {"release_all": true} from standard input, and closes the channel at its end.
func listen(g *gate) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := eachLine(os.Stdin, func(line []byte) error {
			var say struct {
				Release    *string `json:"release"`
				ReleaseAll bool    `json:"release_all"`
			}
			if err := decodeStrictly(line, &say); err != nil {
				emit(failure(badLine{err}).with(object{"event": "error"}))
				return nil
			}
			if say.ReleaseAll {
				g.releaseAll()
			}
			if say.Release != nil {
				g.release(*say.Release)
			}
			return nil
		})
		if err != nil {
			emit(failure(err).with(object{"event": "error"}))
		}
	}()
	return ended
}
