// Command interop is the real Go asynq behind a line protocol, so that tests
// written in another language can put a genuine producer, worker, inspector,
// scheduler or dashboard on the far side of a Redis.
//
// Invariant: standard output carries JSON objects only, one a line; whatever
// asynq logs goes to standard error. A program that cannot go on prints
// {"error": ...} as its last line and exits with 1.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// A command runs until its input, its work or a signal ends it.
type command struct {
	name string
	help string
	run  func(args []string) error
}

func commands() []command {
	return []command{
		{"enqueue", "tasks in by lines of JSON, what asynq answered out", runEnqueue},
		{"work", "an asynq server whose handlers do what payloads say", runWork},
		{"inspect", "one call of the inspector a line", runInspect},
		{"schedule", "an asynq scheduler with entries by lines of JSON", runSchedule},
		{"keys", "every key of the database, sorted, with its contents", runKeys},
		{"vectors", "the bytes that asynq wrote for each task given", runVectors},
		{"mon", "asynqmon on a port", runMon},
		{"measure", "what a pending task costs in memory", runMeasure},
	}
}

func main() {
	if err := dispatch(os.Args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		emit(object{"error": err.Error()})
		os.Exit(1)
	}
}

func dispatch(args []string) (err error) {
	if len(args) == 0 {
		usage(os.Stderr)
		return errors.New("expected a command, got none")
	}
	if args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		usage(os.Stderr)
		return nil
	}
	// asynq and asynqmon panic on some wrong settings; the driver wants a line, not a trace.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	for _, c := range commands() {
		if c.name == args[0] {
			return c.run(args[1:])
		}
	}
	usage(os.Stderr)
	return fmt.Errorf("unknown command %q", args[0])
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "usage: interop COMMAND --redis URI [options]; COMMAND -h lists its options")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-9s %s\n", c.name, c.help)
	}
}
