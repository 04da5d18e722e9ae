// The parts of the bench's scenarios, played by the real asynq.
//
// A part is a command. It says what happens in lines of JSON and does as it is told in lines of one word:
// it is "ready", it is told to go, it is "done", and it ends with its input.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/hibiken/asynq"
)

const (
	queueName = "bench"
	taskType  = "bench:task"
)

// options are the flags of all parts; each part reads those that it needs.
type options struct {
	redis    asynq.RedisConnOpt
	tasks    int
	workers  int
	shape    string
	subjects int
	rate     int
	at       int64
	apart    int64
	late     string
	order    string
}

var parts = map[string]func(options) error{
	"enqueue":  enqueue,
	"pace":     pace,
	"schedule": schedule,
	"work":     work,
	"hold":     hold,
	"idle":     idle,
}

func main() {
	if len(os.Args) < 2 || parts[os.Args[1]] == nil {
		fail(fmt.Errorf("expected the name of a part, got %q", os.Args[1:]))
	}
	opts, err := parse(os.Args[2:])
	if err != nil {
		fail(err)
	}
	if err := parts[os.Args[1]](opts); err != nil {
		fail(err)
	}
}

func parse(args []string) (options, error) {
	var o options
	var redis string
	flags := flag.NewFlagSet("part", flag.ExitOnError)
	flags.StringVar(&redis, "redis", "", "the server's URL")
	flags.IntVar(&o.tasks, "tasks", 0, "how many tasks")
	flags.IntVar(&o.workers, "workers", 0, "tasks at once")
	flags.StringVar(&o.shape, "shape", "", "one, callers or batches")
	flags.IntVar(&o.subjects, "subjects", 0, "asynq has none; 0")
	flags.IntVar(&o.rate, "rate", 0, "tasks a second; 0: random gaps")
	flags.Int64Var(&o.at, "at", 0, "when the first task is due, in seconds since 1970")
	flags.Int64Var(&o.apart, "apart", 0, "seconds from one due task to the next")
	flags.StringVar(&o.late, "late", "", "where to write how late each task began")
	flags.StringVar(&o.order, "order", "", "in-order or random")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	o.redis, err = asynq.ParseRedisURI(redis)
	return o, err
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "asynq:", err)
	os.Exit(1)
}

var input = bufio.NewScanner(os.Stdin)

// say tells what has happened.
func say(event string) {
	line, _ := json.Marshal(map[string]any{"event": event})
	fmt.Println(string(line))
}

// done tells that the work is done and how long it took.
func done(took time.Duration) {
	line, _ := json.Marshal(map[string]any{"event": "done", "secs": took.Seconds()})
	fmt.Println(string(line))
}

// ready says so and waits for the word.
func ready() error {
	say("ready")
	if !input.Scan() {
		return fmt.Errorf("nobody said go")
	}
	return nil
}

// untilEnd waits until we may go.
func untilEnd() {
	for input.Scan() {
	}
}
