// What this release of asynq does with attempts, servers and schedulers, where that is surprising.

package main

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func (b *bench) zsetScore(key, member string) float64 {
	b.t.Helper()
	score, err := b.redis.ZScore(b.ctx(), key, member).Result()
	b.must(err)
	return score
}

func TestFactAnAttemptHasALeaseOfThirtySeconds(t *testing.T) {
	b := newBench(t)
	w := b.work()
	b.enqueue(`{"type":"t","id":"a","payload_json":{"do":"wait"}}`)
	w.eventOf("start", "a")
	left := b.zsetScore(queueKey+"lease", "a") - float64(time.Now().Unix())
	expect(t, "lease", left >= 28 && left <= 30, true)
	expect(t, "state", b.field("a", "state"), "active")
	expect(t, "pending_since", b.field("a", "pending_since"), "")
	first := b.zsetScore(queueKey+"lease", "a")
	b.await("extension of the lease", func() bool { return b.zsetScore(queueKey+"lease", "a") > first })
	w.say(`{"release":"a"}`)
	w.eventOf("end", "a")
	w.stop()
	expect(t, "lease left", b.exists(queueKey+"lease"), false)
}

func TestFactCountersLastNinetyDays(t *testing.T) {
	b := newBench(t)
	b.enqueue(`{"type":"t","id":"a"}`, `{"type":"t","id":"r","payload_json":{"do":"revoke"}}`, `{"type":"t","id":"f","payload_json":{"do":"fail"}}`)
	w := b.work("--retry-delay", "1h")
	b.awaitState("f", "retry")
	w.stop()
	day := time.Now().UTC().Format("2006-01-02")
	for name, want := range map[string]string{"processed": "3", "failed": "1", "processed:" + day: "3", "failed:" + day: "1"} {
		got, err := b.redis.Get(b.ctx(), queueKey+name).Result()
		b.must(err)
		expect(t, name, got, want)
	}
	left, err := b.redis.TTL(b.ctx(), queueKey+"processed:"+day).Result()
	b.must(err)
	expect(t, "ttl", left > 90*24*time.Hour-time.Minute && left <= 90*24*time.Hour, true)
	left, err = b.redis.TTL(b.ctx(), queueKey+"processed").Result()
	b.must(err)
	expect(t, "ttl of the total", left, time.Duration(-1))
}

func TestFactAnErrorThatIsNoFailureStillArchivesWhenNoRetryIsLeft(t *testing.T) {
	b := newBench(t)
	b.enqueue(
		`{"type":"t","id":"none","max_retry":0,"payload_json":{"do":"fail","unfailing":true}}`,
		`{"type":"t","id":"some","max_retry":1,"payload_json":{"do":"fail","unfailing":true}}`,
	)
	w := b.work("--is-failure", "marked", "--retry-delay", "1h")
	b.awaitState("none", "archived")
	b.awaitState("some", "retry")
	w.stop()
	some := b.ask(`{"op":"task","queue":"default","id":"some"}`)["result"].(map[string]any)
	expect(t, "retried", some["retried"], 0)
	expect(t, "last error", some["last_error"], "told to fail")
	got, err := b.redis.Get(b.ctx(), queueKey+"failed").Result()
	b.must(err)
	expect(t, "failures counted", got, "1")
}

func TestFactACancelledTaskIsRetried(t *testing.T) {
	b := newBench(t)
	w := b.work("--retry-delay", "1h")
	b.enqueue(`{"type":"t","id":"a","payload_json":{"do":"wait"}}`)
	w.eventOf("start", "a")
	b.await("cancellation", func() bool {
		b.ask(`{"op":"cancel","id":"a"}`)
		return b.state("a") == "retry"
	})
	task := b.ask(`{"op":"task","queue":"default","id":"a"}`)["result"].(map[string]any)
	expect(t, "last error", task["last_error"], "context canceled")
	expect(t, "retried", task["retried"], 1)
	w.stop()
}

func TestFactErrorTextsOfTheRuntime(t *testing.T) {
	b := newBench(t)
	b.enqueue(
		`{"type":"unknown","id":"unknown"}`,
		`{"type":"a","id":"panic","payload_json":{"panic":true,"error":"oh"}}`,
		`{"type":"a","id":"late","timeout_ms":1000,"payload_json":{"do":"wait"}}`,
		`{"type":"a","id":"past","deadline_ms":1000}`,
	)
	w := b.work("--retry-delay", "1h", "--types", "a")
	want := map[string]string{
		"unknown": `handler not found for task "unknown"`,
		"late":    "context deadline exceeded",
		"past":    "context deadline exceeded",
	}
	for id, text := range want {
		b.awaitState(id, "retry")
		task := b.ask(`{"op":"task","queue":"default","id":"` + id + `"}`)["result"].(map[string]any)
		expect(t, id, task["last_error"], text)
	}
	b.awaitState("panic", "retry")
	task := b.ask(`{"op":"task","queue":"default","id":"panic"}`)["result"].(map[string]any)
	text := task["last_error"].(string)
	expect(t, text, strings.HasPrefix(text, "panic error cause by: panic [") && strings.HasSuffix(text, "]: oh"), true)
	w.stop()
}

func TestFactAnErrorTextThatIsNoTextKeepsTheTaskActive(t *testing.T) {
	b := newBench(t)
	b.enqueue(`{"type":"t","id":"a","payload_json":{"do":"fail","error_base64":"` + base64.StdEncoding.EncodeToString([]byte{0xff}) + `"}}`)
	w := b.work()
	w.eventOf("failed", "a")
	w.stop()
	expect(t, "state", b.state("a"), "active")
}

func TestFactARequeuedTaskIsNextAndHasNoPendingSince(t *testing.T) {
	b := newBench(t)
	w := b.work("--shutdown-timeout", "50ms", "--concurrency", "1")
	b.enqueue(`{"type":"t","id":"first","payload_json":{"do":"wait"}}`, `{"type":"t","id":"second"}`)
	w.eventOf("start", "first")
	w.signal(syscall.SIGTERM)
	w.event("stopped")
	ids, err := b.redis.LRange(b.ctx(), queueKey+"pending", 0, -1).Result()
	b.must(err)
	expect(t, "pending", ids, []string{"second", "first"})
	expect(t, "pending_since", b.field("first", "pending_since"), "")
	expect(t, "latency", b.ask(`{"op":"queue","queue":"default"}`)["result"].(map[string]any)["latency_ms"], 0)
}

func TestFactAPendingIdWithoutItsHashStaysActive(t *testing.T) {
	b := newBench(t)
	b.must(b.redis.LPush(b.ctx(), queueKey+"pending", "ghost").Err())
	w := b.work()
	b.await("ghost in active", func() bool {
		ids, err := b.redis.LRange(b.ctx(), queueKey+"active", 0, -1).Result()
		b.must(err)
		return len(ids) == 1
	})
	w.stop()
	hash, err := b.redis.HGetAll(b.ctx(), queueKey+"t:ghost").Result()
	b.must(err)
	expect(t, "hash", hash, map[string]string{"state": "active"})
	expect(t, "lease", b.exists(queueKey+"lease"), true)
}

// With some 8,000 old members or more, the script of an archive dies half way, on this queue for ever.
func TestFactAFullArchiveOfOldTasksBreaksArchiving(t *testing.T) {
	b := newBench(t)
	old := make([]redis.Z, 9000)
	for i := range old {
		old[i] = redis.Z{Score: 1, Member: fmt.Sprintf("old%d", i)}
	}
	b.must(b.redis.ZAdd(b.ctx(), queueKey+"archived", old...).Err())
	b.enqueue(`{"type":"t","id":"a","payload_json":{"do":"skip_retry"}}`)
	w := b.work()
	w.eventOf("failed", "a")
	b.await("id in archived", func() bool {
		return b.redis.ZScore(b.ctx(), queueKey+"archived", "a").Err() == nil
	})
	w.stop()
	expect(t, "state", b.field("a", "state"), "active")
	expect(t, "lease", b.exists(queueKey+"lease"), false)
}

func TestFactServersAreKeysOfTenSeconds(t *testing.T) {
	b := newBench(t)
	w := b.work("--queues", "default=4,low=2", "--strict", "--concurrency", "3")
	b.enqueue(`{"type":"t","id":"a","payload_json":{"do":"wait"}}`)
	w.eventOf("start", "a")
	keys, err := b.redis.ZRange(b.ctx(), "asynq:servers", 0, -1).Result()
	b.must(err)
	expect(t, "servers", len(keys), 1)
	left, err := b.redis.PTTL(b.ctx(), keys[0]).Result()
	b.must(err)
	expect(t, keys[0], left > 0 && left <= 10*time.Second, true)
	b.await("worker in the snapshot", func() bool {
		s := b.ask(`{"op":"servers"}`)["result"].([]any)[0].(map[string]any)
		return len(s["workers"].([]any)) == 1
	})
	s := b.ask(`{"op":"servers"}`)["result"].([]any)[0].(map[string]any)
	expect(t, "queues", s["queues"], map[string]any{"default": 4, "low": 2})
	expect(t, "status", s["status"], "active")
	w.signal(syscall.SIGTSTP)
	b.await("status stopped", func() bool {
		return b.ask(`{"op":"servers"}`)["result"].([]any)[0].(map[string]any)["status"] == "stopped"
	})
	w.say(`{"release":"a"}`)
	w.stop()
	for _, key := range append(keys, "asynq:servers", "asynq:workers") {
		expect(t, key, b.exists(key), false)
	}
}

func TestFactOptionsOfEntriesAreStrings(t *testing.T) {
	b := newBench(t)
	s := b.start("schedule", "--heartbeat", "100ms")
	s.event("ready")
	s.say(`{"spec":"@every 1h","task":{"type":"t","payload":"p","queue":"lo\"w","id":"x","max_retry":3,"timeout_ms":90000,` +
		`"deadline_ms":1700000000000,"unique_ms":3600000,"process_in_ms":300000,"retention_ms":86400000,"group":"g","headers":{"k":"v"}}}`)
	s.event("registered")
	b.await("snapshot", func() bool { return b.exists("asynq:schedulers") })
	var raw string
	b.await("entry", func() bool {
		keys, err := b.redis.Keys(b.ctx(), "asynq:schedulers:*").Result()
		b.must(err)
		if len(keys) == 1 {
			raw = b.redis.LIndex(b.ctx(), keys[0], 0).Val()
		}
		return raw != ""
	})
	for _, text := range []string{
		`Queue("lo\"w")`, `TaskID("x")`, `MaxRetry(3)`, `Timeout(1m30s)`, `Deadline(Tue Nov 14 22:13:20 UTC 2023)`,
		`Unique(1h0m0s)`, `ProcessIn(5m0s)`, `Retention(24h0m0s)`, `Group("g")`,
	} {
		expect(t, text, strings.Contains(raw, text), true)
	}
	expect(t, "headers are not listed", strings.Contains(raw, "Header"), false)
	expect(t, "never ran", strings.Contains(raw, "\x3a\x0b\x08\x80\x92\xb8\xc3\x98\xfe\xff\xff\xff\x01"), true)
	s.stop()
}

func TestFactAnOptionWithoutParenthesisMakesTheInspectorPanic(t *testing.T) {
	b := newBench(t)
	entry, err := hex.DecodeString("0a026531" + "120a40657665727920333073" + "1a0174" + "2a03426164")
	b.must(err)
	key := "asynq:schedulers:{h:1:x}"
	b.must(b.redis.LPush(b.ctx(), key, entry).Err())
	b.must(b.redis.ZAdd(b.ctx(), "asynq:schedulers", redis.Z{Score: 4102444800, Member: key}).Err())
	expect(t, "error", strings.HasPrefix(b.errorOf(`{"op":"scheduler_entries"}`), "panic:"), true)
	b.must(b.redis.LSet(b.ctx(), key, 0, entry[:len(entry)-len("2a03426164")/2]).Err())
	answer := b.ask(`{"op":"scheduler_entries"}`)["result"].([]any)[0].(map[string]any)
	expect(t, "an absent time is 1970, not never", answer["previous_at_ms"], 0)
}
