// Each command once for real, over its line protocol.

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestEnqueueAnswersEveryLineInOrder(t *testing.T) {
	b := newBench(t)
	out := b.enqueue(
		`{"type":"t","id":"a"}`,
		`{"type":"t","id":"a"}`,
		`{"type":"t","payload":"x","unique_ms":60000}`,
		`{"type":"t","payload":"x","unique_ms":60000}`,
		`{"type":"t","group":"g"}`,
		`{"type":"t","process_in_ms":60000,"payload_base64":"//8="}`,
		`{"type":" "}`,
		`{"type":"t","colour":"red"}`,
	)
	want := []string{"pending", "conflict", "pending", "duplicate", "aggregating", "scheduled", "other", "line"}
	expect(t, "answers", len(out), len(want))
	for i, o := range out {
		got := o["state"]
		if got == nil {
			got = o["kind"]
		}
		expect(t, "answer", got, want[i])
	}
	expect(t, "payload", out[5]["payload_base64"], "//8=")
}

func TestAMistakeEndsWithALineAndCodeOne(t *testing.T) {
	b := newBench(t)
	for _, flags := range [][]string{{"--redis", "http://x"}, {"--redis", ""}, {"--nothing"}, {"more"}} {
		out, code := b.end("enqueue", flags)
		expect(t, "code", code, 1)
		expect(t, "lines", len(out), 1)
		if out[0]["error"] == nil {
			t.Errorf("no error in %v", out[0])
		}
	}
}

func TestHandlersDoWhatPayloadsSay(t *testing.T) {
	b := newBench(t)
	b.enqueue(
		`{"type":"a","id":"ok","payload_json":{"result":"r"},"retention_ms":60000}`,
		`{"type":"a","id":"fail","payload_json":{"do":"fail","error":"boom"}}`,
		`{"type":"a","id":"skip","payload_json":{"do":"skip_retry"}}`,
		`{"type":"a","id":"revoke","payload_json":{"do":"revoke"},"retention_ms":60000}`,
		`{"type":"a","id":"panic","payload_json":{"panic":true}}`,
		`{"type":"a","id":"twice","payload_json":{"fail_first":2},"retention_ms":60000}`,
		`{"type":"unknown","id":"nobody","max_retry":0}`,
	)
	w := b.work("--retry-delay", "1s", "--types", "a")
	b.awaitState("ok", "completed")
	b.awaitState("skip", "archived")
	b.awaitState("revoke", "task_not_found")
	b.awaitState("nobody", "archived")
	b.awaitState("twice", "completed")
	fail := b.ask(`{"op":"task","queue":"default","id":"fail"}`)["result"].(map[string]any)
	expect(t, "last error", fail["last_error"], "boom")
	ok := b.ask(`{"op":"task","queue":"default","id":"ok"}`)["result"].(map[string]any)
	expect(t, "result", ok["result"], "r")
	w.stop()
}

func TestADriverHoldsAndReleasesAHandler(t *testing.T) {
	b := newBench(t)
	w := b.work("--name", "w1")
	b.enqueue(`{"type":"t","id":"held","payload_json":{"do":"wait"}}`)
	start := w.eventOf("start", "held")
	expect(t, "name", start["name"], "w1")
	expect(t, "state", b.state("held"), "active")
	w.say(`{"release":"held"}`)
	expect(t, "outcome", w.eventOf("end", "held")["outcome"], "ok")
	w.say(`{"release_all":true}`)
	b.enqueue(`{"type":"t","id":"free","payload_json":{"do":"wait"}}`)
	w.eventOf("end", "free")
	w.stop()
}

func TestSignalsStopAWorkerAsAsynqDoes(t *testing.T) {
	b := newBench(t)
	w := b.work("--shutdown-timeout", "100ms")
	b.enqueue(`{"type":"t","id":"held","payload_json":{"do":"wait","deaf":true}}`)
	w.eventOf("start", "held")
	w.signal(syscall.SIGTSTP)
	w.event("signal")
	b.enqueue(`{"type":"t","id":"late"}`)
	w.signal(syscall.SIGTERM)
	w.event("stopped")
	expect(t, "held", b.state("held"), "pending")
	expect(t, "late", b.state("late"), "pending")
	expect(t, "servers", b.ask(`{"op":"servers"}`)["result"], []any{})
}

func TestGroupsBecomeOneTask(t *testing.T) {
	b := newBench(t)
	b.enqueue(`{"type":"t","group":"g","payload":"1"}`, `{"type":"t","group":"g","payload":"2"}`)
	w := b.work("--group-type", "all", "--group-max-size", "2", "--group-grace", "1s")
	expect(t, "count", w.event("aggregate")["count"], 2)
	start := w.event("start")
	expect(t, "type", start["type"], "all")
	w.stop()
}

func TestSchedulerFiresAndIsSeen(t *testing.T) {
	b := newBench(t)
	s := b.start("schedule", "--heartbeat", "100ms")
	s.event("ready")
	s.say(`{"spec":"@every 1s","task":{"type":"tick","payload":"p","queue":"low","timeout_ms":90000}}`)
	entry := s.event("registered")["entry"].(string)
	s.say(`{"spec":"nonsense","task":{"type":"tick"}}`)
	s.event("error")
	task := s.event("enqueued")["task"].(map[string]any)
	b.await("snapshot", func() bool {
		entries := b.ask(`{"op":"scheduler_entries"}`)["result"].([]any)
		return len(entries) == 1 && entries[0].(map[string]any)["id"] == entry
	})
	b.await("event", func() bool {
		events := b.ask(`{"op":"enqueue_events","id":"` + entry + `"}`)["result"].([]any)
		return len(events) > 0 && events[len(events)-1].(map[string]any)["id"] == task["id"]
	})
	s.say(`{"unregister":"` + entry + `"}`)
	s.event("unregistered")
	s.stop()
	expect(t, "entries", b.ask(`{"op":"scheduler_entries"}`)["result"], []any{})
}

func TestKeysDumpsAllTypesSorted(t *testing.T) {
	b := newBench(t)
	b.enqueue(`{"type":"t","id":"a","unique_ms":60000}`, `{"type":"t","id":"b","process_at_ms":4102444800000}`)
	out := b.run("keys", []string{"--ttl"})
	want := []string{
		"asynq:queues set", "asynq:{default}:pending list", "asynq:{default}:scheduled zset",
		"asynq:{default}:t:a hash", "asynq:{default}:t:b hash", "asynq:{default}:unique:t: string",
	}
	expect(t, "keys", len(out), len(want))
	for i, o := range out {
		expect(t, "key", o["key"].(string)+" "+o["type"].(string), want[i])
	}
	expect(t, "list", out[1]["value"], []any{"61"})
	expect(t, "zset", out[2]["value"], []any{[]any{"62", "4102444800"}})
	if left := out[5]["ttl_ms"].(float64); left <= 0 || left > 60000 {
		t.Errorf("ttl of the lock: %v", left)
	}
	text := b.run("keys", []string{"--text", "--match", "asynq:{default}:pending"})
	expect(t, "text", text[0]["value"], []any{"a"})
}

// Whoever bumps asynq sees here whether it writes other bytes; the Rust side reads the same two files.
func TestVectorsAreAsTheyWere(t *testing.T) {
	b := newBench(t)
	tasks, err := os.ReadFile("vectors.tasks.jsonl")
	b.must(err)
	golden, err := os.ReadFile("vectors.golden.jsonl")
	b.must(err)
	want := strings.Split(strings.TrimSpace(string(golden)), "\n")
	out := b.run("vectors", nil, strings.Split(string(tasks), "\n")...)
	expect(t, "vectors", len(out), len(want))
	for i, o := range out {
		got, err := json.Marshal(o)
		b.must(err)
		expect(t, "vector", string(got), want[i])
	}
}

func TestDashboardServesPagesAndApi(t *testing.T) {
	b := newBench(t)
	b.enqueue(`{"type":"t","id":"a","payload":"hello"}`)
	m := b.start("mon", "--until-eof")
	url := m.event("ready")["url"].(string)
	expect(t, "pending", bytes.Contains(get(b, url+"api/queues/default/pending_tasks"), []byte(`"payload":"hello"`)), true)
	page := get(b, url)
	expect(t, "page", bytes.Contains(page, []byte("<div id=\"root\">")), true)
	_, rest, _ := strings.Cut(string(page), `src="`)
	script, _, _ := strings.Cut(rest, `"`)
	if len(get(b, url+strings.TrimPrefix(script, "/"))) < 1000 {
		t.Errorf("the page's script %q is not served", script)
	}
	m.stop()
}

func get(b *bench, url string) []byte {
	b.t.Helper()
	resp, err := http.Get(url)
	b.must(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	b.must(err)
	expect(b.t, url, resp.StatusCode, 200)
	return body
}

func TestMeasureNeedsAnEmptyRedisAndReports(t *testing.T) {
	b := newBench(t)
	out := b.run("measure", []string{"--tasks", "2000"})
	if used := out[0]["used_memory_per_task"].(float64); used < 200 || used > 5000 {
		t.Errorf("bytes a task: %v", used)
	}
	_, code := b.end("measure", nil)
	expect(t, "code", code, 1)
}

func TestAClusterTakesAllCommands(t *testing.T) {
	b := newCluster(t)
	b.enqueue(`{"type":"t","id":"a","retention_ms":60000}`, `{"type":"t","queue":"other","id":"b","unique_ms":60000}`)
	w := b.work("--queues", "default=2,other=1")
	b.awaitState("a", "completed")
	w.eventOf("end", "b")
	w.stop()
	nodes := b.ask(`{"op":"cluster_nodes","queue":"default"}`)["result"].([]any)
	expect(t, "nodes", len(nodes), 1)
	expect(t, "queues", b.run("keys", []string{"--match", "asynq:queues"})[0]["type"], "set")
	b.run("vectors", nil, `{"type":"t","id":"v"}`)
}

func status(b *bench, url string) int {
	b.t.Helper()
	resp, err := http.Get(url)
	b.must(err)
	b.must(resp.Body.Close())
	return resp.StatusCode
}
