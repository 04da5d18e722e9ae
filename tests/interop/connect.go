// Where the Redis is: one flag for all commands.

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

const redisHelp = "redis://[:pw@]host:port/db, rediss://, redis-socket:///path?db=n, " +
	"redis-sentinel://h:p,h:p?master=name, or redis-cluster://h:p,h:p (also a bare list with commas)"

// flags makes the flag set of a command, with --redis in it.
func flags(name string) (*flag.FlagSet, *string) {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(os.Stderr)
	return set, set.String("redis", "", redisHelp)
}

// parse reads the flags and the address of the Redis.
func parse(set *flag.FlagSet, uri *string, args []string) (asynq.RedisConnOpt, error) {
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	return redisAt(*uri)
}

// redisAt adds the form for a cluster to those that asynq reads itself.
func redisAt(uri string) (asynq.RedisConnOpt, error) {
	if uri == "" {
		return nil, errors.New("expected --redis URI")
	}
	list, cluster := strings.CutPrefix(uri, "redis-cluster://")
	if cluster || !strings.Contains(uri, "://") {
		return asynq.RedisClusterClientOpt{Addrs: strings.Split(list, ",")}, nil
	}
	return asynq.ParseRedisURI(uri)
}

// rawClient connects without asynq, for what asynq has no call for.
func rawClient(at asynq.RedisConnOpt) (redis.UniversalClient, error) {
	client, ok := at.MakeRedisClient().(redis.UniversalClient)
	if !ok {
		return nil, fmt.Errorf("asynq made a client of unexpected type %T", at)
	}
	return client, nil
}

// stopAt gives a channel that closes on TERM or INT, and at the end of standard input if told to.
func stopAt(untilEOF bool) <-chan struct{} {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	ended := make(chan struct{})
	if untilEOF {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			close(ended)
		}()
	}
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		select {
		case <-signals:
		case <-ended:
		}
	}()
	return stop
}
