// asynqmon, the dashboard that people run beside asynq, on a port of this machine.

package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/hibiken/asynqmon"
)

func runMon(args []string) error {
	set, uri := flags("mon")
	listenAt := set.String("listen", "127.0.0.1:0", "address to listen at; port 0 takes a free one")
	root := set.String("root", "/", "path below which everything is served")
	readOnly := set.Bool("read-only", false, "refuse whatever changes something")
	untilEOF := set.Bool("until-eof", false, "stop when standard input ends, as by TERM")
	at, err := parse(set, uri, args)
	if err != nil {
		return err
	}
	handler := asynqmon.New(asynqmon.Options{RootPath: *root, RedisConnOpt: at, ReadOnly: *readOnly})
	defer handler.Close()
	listener, err := net.Listen("tcp", *listenAt)
	if err != nil {
		return err
	}
	// Before the line that invites signals.
	stop := stopAt(*untilEOF)
	address := listener.Addr().String()
	emit(object{
		"event": "ready", "address": address, "pid": os.Getpid(),
		"url": "http://" + address + strings.TrimSuffix(*root, "/") + "/",
	})
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	go func() {
		<-stop
		failed <- server.Shutdown(context.Background())
	}()
	if err := <-failed; err != nil && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	emit(object{"event": "stopped", "pid": os.Getpid()})
	return nil
}
