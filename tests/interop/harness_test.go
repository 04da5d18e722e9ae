// A private Redis and the built program for each test, driven as another language would drive it.

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// program is the path of the binary under test.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "interop")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "interop")
		build := exec.Command("go", "build", "-o", program, ".")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "building the program:", err)
			return 1
		}
		return m.Run()
	}())
}

// patience is how long a test waits for something that should come at once, or within asynq's own intervals.
const patience = 30 * time.Second

// A bench is one Redis with the means to drive it.
type bench struct {
	t     *testing.T
	uri   string
	redis redis.UniversalClient
}

// newBench starts a Redis on a socket of its own.
func newBench(t *testing.T) *bench {
	t.Helper()
	t.Parallel()
	dir, err := os.MkdirTemp("", "iop") // t.TempDir has names too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	b := &bench{t: t, uri: "redis-socket://" + socket}
	b.redis = redis.NewClient(&redis.Options{Network: "unix", Addr: socket})
	b.serve(dir, "--port", "0", "--unixsocket", socket)
	return b
}

// newCluster starts a cluster of one node, which asks of its clients what a large one asks.
func newCluster(t *testing.T) *bench {
	t.Helper()
	t.Parallel()
	port, busPort := freePort(t), freePort(t)
	b := &bench{t: t, uri: "redis-cluster://127.0.0.1:" + port}
	b.redis = redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:" + port}})
	single := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port})
	defer single.Close()
	whole := b.redis
	b.redis = single
	b.serve(t.TempDir(), "--port", port, "--cluster-enabled", "yes", "--cluster-port", busPort, "--bind", "127.0.0.1")
	b.redis = whole
	b.must(single.ClusterAddSlotsRange(b.ctx(), 0, 16383).Err())
	b.await("a cluster that is up", func() bool {
		info, err := single.ClusterInfo(b.ctx()).Result()
		return err == nil && strings.Contains(info, "cluster_state:ok")
	})
	t.Cleanup(func() { whole.Close() })
	return b
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func (b *bench) serve(dir string, args ...string) {
	b.t.Helper()
	server := exec.Command("redis-server", append(args, "--save", "", "--dir", dir)...)
	b.must(server.Start())
	b.t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	first := b.redis
	b.await("an answer of Redis", func() bool { return first.Ping(b.ctx()).Err() == nil })
}

func (b *bench) ctx() context.Context { return context.Background() }

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// await looks until it is so.
func (b *bench) await(what string, so func() bool) {
	b.t.Helper()
	for began := time.Now(); time.Since(began) < patience; time.Sleep(5 * time.Millisecond) {
		if so() {
			return
		}
	}
	b.t.Fatalf("no %s within %v", what, patience)
}

// run feeds lines to a command that ends with its input, and gives its lines.
func (b *bench) run(command string, flags []string, lines ...string) []object {
	b.t.Helper()
	out, code := b.end(command, flags, lines...)
	if code != 0 {
		b.t.Fatalf("%s ended with %d: %v", command, code, out)
	}
	return out
}

func (b *bench) end(command string, flags []string, lines ...string) ([]object, int) {
	b.t.Helper()
	cmd := exec.Command(program, append([]string{command, "--redis", b.uri}, flags...)...)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n"))
	cmd.Stderr = logOf(b.t)
	stdout, err := cmd.Output()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		b.t.Fatal(err)
	}
	var out []object
	for _, line := range bytes.Split(bytes.TrimSpace(stdout), []byte("\n")) {
		if len(line) > 0 {
			out = append(out, decoded(b.t, line))
		}
	}
	return out, cmd.ProcessState.ExitCode()
}

// enqueue gives asynq's answers to the tasks.
func (b *bench) enqueue(lines ...string) []object {
	b.t.Helper()
	return b.run("enqueue", nil, lines...)
}

// ask makes one call of the inspector and gives the whole answer.
func (b *bench) ask(line string) object {
	b.t.Helper()
	return b.run("inspect", nil, line)[0]
}

// state is the state of a task in the queue default, or what the inspector said instead.
func (b *bench) state(id string) string {
	b.t.Helper()
	answer := b.ask(`{"op":"task","queue":"default","id":"` + id + `"}`)
	if result, ok := answer["result"].(map[string]any); ok {
		return result["state"].(string)
	}
	return answer["kind"].(string)
}

func (b *bench) awaitState(id, state string) {
	b.t.Helper()
	b.await(id+" in state "+state, func() bool { return b.state(id) == state })
}

// msg is the message of a task in the queue default.
func (b *bench) msg(id string) string {
	b.t.Helper()
	msg, err := b.redis.HGet(b.ctx(), "asynq:{default}:t:"+id, "msg").Result()
	b.must(err)
	return msg
}

// A process is a command that runs while its standard input is open.
type process struct {
	b     *bench
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan object
}

func (b *bench) start(command string, flags ...string) *process {
	b.t.Helper()
	cmd := exec.Command(program, append([]string{command, "--redis", b.uri}, flags...)...)
	cmd.Stderr = logOf(b.t)
	stdin, err := cmd.StdinPipe()
	b.must(err)
	stdout, err := cmd.StdoutPipe()
	b.must(err)
	b.must(cmd.Start())
	p := &process{b: b, cmd: cmd, stdin: stdin, lines: make(chan object, 1024)}
	b.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	go func() {
		defer close(p.lines)
		in := bufio.NewScanner(stdout)
		in.Buffer(nil, 1<<24)
		for in.Scan() {
			var o object
			if json.Unmarshal(in.Bytes(), &o) == nil {
				p.lines <- o
			}
		}
	}()
	return p
}

// work starts a worker that looks often, and waits until it is ready.
func (b *bench) work(flags ...string) *process {
	b.t.Helper()
	p := b.start("work", append([]string{"--until-eof", "--task-check-interval", "20ms", "--delayed-check-interval", "50ms"}, flags...)...)
	p.event("ready")
	return p
}

func (p *process) say(line string) {
	p.b.t.Helper()
	_, err := io.WriteString(p.stdin, line+"\n")
	p.b.must(err)
}

// next gives the next line, whatever it is.
func (p *process) next() object {
	p.b.t.Helper()
	select {
	case o, ok := <-p.lines:
		if !ok {
			p.b.t.Fatal("the process ended instead of writing a line")
		}
		return o
	case <-time.After(patience):
		p.b.t.Fatalf("no line within %v", patience)
	}
	return nil
}

// event skips lines until one has this event.
func (p *process) event(name string) object {
	p.b.t.Helper()
	for {
		if o := p.next(); o["event"] == name {
			return o
		}
	}
}

// eventOf skips lines until one has this event for this task.
func (p *process) eventOf(name, id string) object {
	p.b.t.Helper()
	for {
		if o := p.event(name); o["id"] == id {
			return o
		}
	}
}

// stop closes the standard input and waits for the end.
func (p *process) stop() {
	p.b.t.Helper()
	p.b.must(p.stdin.Close())
	p.event("stopped")
}

func (p *process) signal(s syscall.Signal) {
	p.b.t.Helper()
	p.b.must(p.cmd.Process.Signal(s))
}

// logOf shows what asynq logs where the tests run with -v.
func logOf(t *testing.T) io.Writer {
	t.Helper()
	if testing.Verbose() {
		return os.Stderr
	}
	return io.Discard
}

func decoded(t *testing.T, line []byte) object {
	t.Helper()
	var o object
	if err := json.Unmarshal(line, &o); err != nil {
		t.Fatalf("a line that is no JSON: %q: %v", line, err)
	}
	return o
}

func expect(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
