// Producers that keep time: at a rate, with random gaps, or for later.

package main

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hibiken/asynq"
)

const (
	tick          = time.Millisecond
	unansweredMax = 2000
	gapMin        = 20 * time.Millisecond
	gapMore       = 180 * time.Millisecond
)

// producing connects, waits for the word, and tells how long the work took.
func producing(o options, work func(*asynq.Client) error) error {
	client := asynq.NewClient(o.redis)
	defer client.Close()
	if err := client.Ping(); err != nil {
		return err
	}
	if err := ready(); err != nil {
		return err
	}
	began := time.Now()
	if err := work(client); err != nil {
		return err
	}
	done(time.Since(began))
	untilEnd()
	return nil
}

func pace(o options) error {
	return producing(o, func(client *asynq.Client) error {
		if o.rate == 0 {
			return withGaps(client, o.tasks)
		}
		return atRate(client, o.tasks, o.rate)
	})
}

func withGaps(client *asynq.Client, tasks int) error {
	for number := range tasks {
		time.Sleep(gapMin + rand.N(gapMore))
		if err := send(client, stamped(time.Now().UnixMicro(), number)); err != nil {
			return err
		}
	}
	return nil
}

// atRate sends what is due, whatever the answers take.
func atRate(client *asynq.Client, tasks, rate int) error {
	unanswered := make(chan struct{}, unansweredMax)
	var all sync.WaitGroup
	var once sync.Once
	var first error
	began, sent := time.Now(), 0
	for sent < tasks {
		due := int(time.Since(began).Seconds() * float64(rate))
		for ; sent < min(due, tasks); sent++ {
			unanswered <- struct{}{}
			bytes := stamped(time.Now().UnixMicro(), sent)
			all.Add(1)
			go func() {
				defer all.Done()
				if err := send(client, bytes); err != nil {
					once.Do(func() { first = err })
				}
				<-unanswered
			}()
		}
		time.Sleep(tick)
	}
	all.Wait()
	return first
}

// schedule enqueues what is due at one time, or at several some seconds apart.
func schedule(o options) error {
	return producing(o, func(client *asynq.Client) error {
		return shared(callers, o.tasks, func(number int) error {
			due := time.Unix(o.at+o.apart*int64(number), 0)
			return send(client, stamped(due.UnixMicro(), number), asynq.ProcessAt(due))
		})
	})
}
