// The producer: one task a line in, one answer a line out, in the same order.

package main

import (
	"os"

	"github.com/hibiken/asynq"
)

func runEnqueue(args []string) error {
	set, uri := flags("enqueue")
	at, err := parse(set, uri, args)
	if err != nil {
		return err
	}
	client := asynq.NewClient(at)
	defer client.Close()
	return eachLine(os.Stdin, func(line []byte) error {
		info, err := enqueue(client, line)
		if err != nil {
			emit(failure(err))
			return nil
		}
		emit(taskView(info))
		return nil
	})
}
