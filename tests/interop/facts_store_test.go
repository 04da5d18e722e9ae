// What this release of asynq does in the places where the wire is surprising; a bump of the version that changes one
// of these changes what the Rust side must tolerate.

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const queueKey = "asynq:{default}:"

func (b *bench) exists(key string) bool {
	b.t.Helper()
	n, err := b.redis.Exists(b.ctx(), key).Result()
	b.must(err)
	return n == 1
}

func (b *bench) field(id, name string) string {
	b.t.Helper()
	value, err := b.redis.HGet(b.ctx(), queueKey+"t:"+id, name).Result()
	if err != redis.Nil {
		b.must(err)
	}
	return value
}

// errorOf is the error text of one call of the inspector, or nothing.
func (b *bench) errorOf(line string) string {
	b.t.Helper()
	text, _ := b.ask(line)["error"].(string)
	return text
}

func TestFactAnIdConflictLeavesTheLockBehind(t *testing.T) {
	b := newBench(t)
	b.enqueue(`{"type":"t","id":"a"}`)
	again := `{"type":"t","id":"a","payload":"x","unique_ms":60000}`
	out := b.enqueue(again, again)
	expect(t, "first", out[0]["kind"], "conflict")
	expect(t, "duplicate comes before conflict", out[1]["kind"], "duplicate")
	expect(t, "lock", b.exists(queueKey+"unique:t:9dd4e461268c8034f5c8564e155c67a6"), true)
}

func TestFactAnIdIsTakenInEveryState(t *testing.T) {
	b := newBench(t)
	b.enqueue(`{"type":"t","id":"done","retention_ms":60000}`, `{"type":"t","id":"dead","payload_json":{"do":"skip_retry"}}`)
	w := b.work()
	b.awaitState("done", "completed")
	b.awaitState("dead", "archived")
	w.stop()
	for _, o := range b.enqueue(`{"type":"t","id":"done"}`, `{"type":"t","id":"dead"}`) {
		expect(t, "answer", o["kind"], "conflict")
	}
}

func TestFactLocksOutliveArchiveAndBulkDeletion(t *testing.T) {
	b := newBench(t)
	lock := func(payload string) bool {
		key, err := b.redis.Keys(b.ctx(), queueKey+"unique:"+payload+":*").Result()
		b.must(err)
		return len(key) > 0
	}
	b.enqueue(
		`{"type":"pending","id":"p","unique_ms":60000}`, `{"type":"scheduled","id":"s","unique_ms":60000,"process_in_ms":60000}`,
		`{"type":"grouped","id":"g","unique_ms":60000,"group":"g"}`, `{"type":"grouped2","id":"g2","unique_ms":60000,"group":"g2"}`,
		`{"type":"one","id":"o","unique_ms":60000}`,
	)
	expect(t, "unique_key of a grouped task", b.field("g", "unique_key"), "")
	b.ask(`{"op":"delete","queue":"default","id":"o"}`)
	b.ask(`{"op":"delete","queue":"default","id":"g"}`)
	b.ask(`{"op":"delete_all","queue":"default","state":"pending"}`)
	b.ask(`{"op":"delete_all","queue":"default","state":"scheduled"}`)
	b.ask(`{"op":"delete_all","queue":"default","state":"aggregating","group":"g2"}`)
	expect(t, "after delete", lock("one"), false)
	expect(t, "after delete_all scheduled", lock("scheduled"), false)
	expect(t, "after delete_all pending", lock("pending"), true)
	expect(t, "after delete of a grouped task", lock("grouped"), true)
	expect(t, "after delete_all aggregating", lock("grouped2"), true)
}

func TestFactAScheduledTaskNeverReachesItsGroup(t *testing.T) {
	b := newBench(t)
	b.enqueue(`{"type":"t","id":"a","group":"g","process_in_ms":1000}`)
	expect(t, "group", b.field("a", "group"), "")
	w := b.work("--group-type", "all", "--group-grace", "1s")
	expect(t, "id", w.event("start")["id"], "a")
	w.stop()
}

func TestFactForwardingIntoAGroupDoesNotRegisterIt(t *testing.T) {
	b := newBench(t)
	b.enqueue(`{"type":"t","id":"a","process_at_ms":4102444800000}`)
	b.must(b.redis.HSet(b.ctx(), queueKey+"t:a", "group", "g").Err())
	b.must(b.redis.ZAdd(b.ctx(), queueKey+"scheduled", redis.Z{Score: 1, Member: "a"}).Err())
	w := b.work()
	b.awaitState("a", "aggregating")
	expect(t, "groups", b.exists(queueKey+"groups"), false)
	w.stop()
}

func TestFactARemovedQueueStaysUnlistedForItsProducer(t *testing.T) {
	b := newBench(t)
	e := b.start("enqueue")
	e.say(`{"type":"t","id":"a"}`)
	e.next()
	b.ask(`{"op":"delete_queue","queue":"default","force":true}`)
	e.say(`{"type":"t","id":"b"}`)
	e.next()
	expect(t, "queues", b.ask(`{"op":"queues"}`)["result"], []any{})
	expect(t, "task", b.exists(queueKey+"t:b"), true)
}

func TestFactARemovedQueueLeavesKeysBehind(t *testing.T) {
	b := newBench(t)
	b.enqueue(`{"type":"t","id":"done","retention_ms":600000}`, `{"type":"t","id":"g","group":"g"}`)
	w := b.work()
	b.awaitState("done", "completed")
	w.stop()
	b.enqueue(`{"type":"u","id":"p","unique_ms":60000}`)
	b.ask(`{"op":"pause","queue":"default"}`)
	expect(t, "not forced", b.ask(`{"op":"delete_queue","queue":"default"}`)["kind"], "queue_not_empty")
	b.ask(`{"op":"delete","queue":"default","id":"p"}`)
	b.enqueue(`{"type":"u","id":"p","unique_ms":60000}`)
	expect(t, "forced", b.ask(`{"op":"delete_queue","queue":"default","force":true}`)["result"], true)
	var left []string
	for _, o := range b.run("keys", nil) {
		left = append(left, strings.TrimPrefix(o["key"].(string), queueKey))
	}
	day := time.Now().UTC().Format("2006-01-02")
	expect(t, "left", left, []string{
		"completed", "g:g", "groups", "paused", "processed", "processed:" + day, "t:done", "t:g", "unique:u:",
	})
}

func TestFactPauseAsksForNoQueue(t *testing.T) {
	b := newBench(t)
	expect(t, "unknown", b.ask(`{"op":"pause","queue":"nope"}`)["result"], true)
	expect(t, "twice", b.errorOf(`{"op":"pause","queue":"nope"}`), `queue "nope" is already paused`)
	b.ask(`{"op":"unpause","queue":"nope"}`)
	expect(t, "not paused", b.errorOf(`{"op":"unpause","queue":"nope"}`), `queue "nope" is not paused`)
}

func TestFactPagesOfSizeZeroHaveEverything(t *testing.T) {
	b := newBench(t)
	for i := range 5 {
		b.enqueue(fmt.Sprintf(`{"type":"t","id":"p%d"}`, i), fmt.Sprintf(`{"type":"t","id":"s%d","process_at_ms":41024448%d0000}`, i, i))
	}
	ids := func(state, paging string) string {
		var out []string
		for _, task := range b.ask(`{"op":"list","queue":"default","state":"` + state + `"` + paging + `}`)["result"].([]any) {
			out = append(out, task.(map[string]any)["id"].(string))
		}
		return strings.Join(out, " ")
	}
	expect(t, "oldest first", ids("pending", ""), "p0 p1 p2 p3 p4")
	expect(t, "second page", ids("pending", `,"size":2,"page":2`), "p2 p3")
	expect(t, "size 0", ids("scheduled", `,"size":0`), "s0 s1 s2 s3 s4")
	expect(t, "size 0", ids("pending", `,"size":0`), "p0 p1 p2 p3 p4")
	expect(t, "page 0 of a zset", ids("scheduled", `,"size":2,"page":0`), "s3 s4")
	expect(t, "page 0 of a list", ids("pending", `,"size":2,"page":0`), "p3 p4")
	expect(t, "page -1", ids("pending", `,"size":2,"page":-1`), "p0 p1")
}

func TestFactFractionalScoresAreListedAndForwarded(t *testing.T) {
	b := newBench(t)
	b.enqueue(`{"type":"t","id":"a","process_at_ms":4102444800000}`)
	b.must(b.redis.ZAdd(b.ctx(), queueKey+"scheduled", redis.Z{Score: 4102444800.5, Member: "a"}).Err())
	list := b.ask(`{"op":"list","queue":"default","state":"scheduled"}`)
	expect(t, "error of list", list["error"], nil)
	get := b.ask(`{"op":"task","queue":"default","id":"a"}`)
	expect(t, "error of task", get["error"], nil)
	b.must(b.redis.ZAdd(b.ctx(), queueKey+"scheduled", redis.Z{Score: 1.5, Member: "a"}).Err())
	w := b.work()
	w.eventOf("end", "a")
	w.stop()
}

func TestFactPayloadsChangeOnlyWhileScheduled(t *testing.T) {
	b := newBench(t)
	b.enqueue(`{"type":"t","id":"p"}`, `{"type":"u","id":"s","payload":"a","unique_ms":60000,"process_in_ms":60000,"headers":{"h":"v"}}`)
	lock := b.field("s", "unique_key")
	expect(t, "pending", b.errorOf(`{"op":"update_payload","queue":"default","id":"p","payload":"x"}`),
		"asynq: FAILED_PRECONDITION: cannot update task that is not in scheduled state.")
	b.ask(`{"op":"update_payload","queue":"default","id":"s","payload":"b"}`)
	task := b.ask(`{"op":"task","queue":"default","id":"s"}`)["result"].(map[string]any)
	expect(t, "payload", task["payload"], "b")
	expect(t, "headers", task["headers"], map[string]any{"h": "v"})
	expect(t, "lock", b.field("s", "unique_key"), lock)
	expect(t, "no task", b.ask(`{"op":"update_payload","queue":"default","id":"x","payload":"x"}`)["kind"], "task_not_found")
}

func TestFactRunAndArchiveByHand(t *testing.T) {
	b := newBench(t)
	b.enqueue(`{"type":"t","id":"done","retention_ms":600000}`, `{"type":"t","id":"p"}`, `{"type":"t","id":"s","process_in_ms":60000}`)
	b.ask(`{"op":"archive","queue":"default","id":"p"}`)
	expect(t, "pending_since stays", b.field("p", "pending_since") != "", true)
	expect(t, "twice", b.errorOf(`{"op":"archive","queue":"default","id":"p"}`),
		"asynq: FAILED_PRECONDITION: task is already archived: id=p, queue=default")
	b.ask(`{"op":"run","queue":"default","id":"s"}`)
	expect(t, "pending_since missing", b.field("s", "pending_since"), "")
	expect(t, "twice", b.errorOf(`{"op":"run","queue":"default","id":"s"}`), "asynq: FAILED_PRECONDITION: task is already in pending state")
	w := b.work()
	b.awaitState("done", "completed")
	w.stop()
	expect(t, "a completed task runs again", b.ask(`{"op":"run","queue":"default","id":"done"}`)["result"], true)
	expect(t, "state", b.state("done"), "pending")
	expect(t, "missing", b.ask(`{"op":"run","queue":"default","id":"x"}`)["kind"], "task_not_found")
}

func TestFactErrorsOfMissingQueuesHaveTwoForms(t *testing.T) {
	b := newBench(t)
	for _, op := range []string{"task", "run", "archive", "delete", "delete_queue", "update_payload"} {
		expect(t, op, b.ask(`{"op":"` + op + `","queue":"nope","id":"x"}`)["kind"], "queue_not_found")
	}
	const text = `queue "nope" does not exist`
	for op, want := range map[string]string{
		`"queue"`:                           "NOT_FOUND: " + text,
		`"history","days":1`:                "NOT_FOUND: " + text,
		`"run_all","state":"retry"`:         "NOT_FOUND: INTERNAL_ERROR: " + text,
		`"archive_all","state":"pending"`:   "INTERNAL_ERROR: INTERNAL_ERROR: " + text,
		`"archive_all","state":"scheduled"`: "NOT_FOUND: INTERNAL_ERROR: " + text,
		`"delete_all","state":"pending"`:    "INTERNAL_ERROR: INTERNAL_ERROR: " + text,
	} {
		answer := b.ask(`{"op":` + op + `,"queue":"nope"}`)
		expect(t, op, answer["kind"], "other")
		expect(t, op, answer["error"], want)
	}
	expect(t, "groups", b.ask(`{"op":"groups","queue":"nope"}`)["result"], map[string]any{})
}

func TestFactAnArchiveByHandKeepsTheHashesThatItTrims(t *testing.T) {
	b := newBench(t)
	lines := make([]string, 0, 10001)
	for i := range 10001 {
		lines = append(lines, fmt.Sprintf(`{"type":"t","id":"%05d"}`, i))
	}
	b.enqueue(lines...)
	b.ask(`{"op":"archive_all","queue":"default","state":"pending"}`)
	n, err := b.redis.ZCard(b.ctx(), queueKey+"archived").Result()
	b.must(err)
	expect(t, "archived", n, 9999)
	hashes, err := b.redis.DBSize(b.ctx()).Result()
	b.must(err)
	expect(t, "hashes", hashes, 10001+2)
	expect(t, "orphan", b.errorOf(`{"op":"run","queue":"default","id":"00000"}`),
		"asynq: UNKNOWN: internal error: task id not found in zset asynq:{default}:archived")
}

func TestFactAnIdWithoutItsHashBreaksTheQueueInfo(t *testing.T) {
	b := newBench(t)
	b.enqueue(`{"type":"t","id":"a"}`)
	b.must(b.redis.LPush(b.ctx(), queueKey+"pending", "ghost").Err())
	text := b.errorOf(`{"op":"queue","queue":"default"}`)
	expect(t, "error", strings.Contains(text, "attempt to perform arithmetic"), true)
	list := b.ask(`{"op":"list","queue":"default","state":"pending"}`)["result"].([]any)
	expect(t, "listed as a blank task", list[1].(map[string]any)["id"], "")
	m := b.start("mon", "--until-eof")
	url := m.event("ready")["url"].(string)
	expect(t, "dashboard", status(b, url+"api/queues"), 500)
	m.stop()
}

func TestFactAnEmptyGroupMakesMemoryNotANumber(t *testing.T) {
	b := newBench(t)
	b.enqueue(`{"type":"t","id":"a"}`)
	b.must(b.redis.SAdd(b.ctx(), queueKey+"groups", "empty").Err())
	info := b.ask(`{"op":"queue","queue":"default"}`)["result"].(map[string]any)
	expect(t, "bytes", info["memory_usage_bytes"].(float64) < 0, true)
}
