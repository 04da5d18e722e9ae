// Lets a driver hold a handler until it says otherwise, so that no test has to sleep.

package main

import "sync"

// A gate holds each id until it is released. A release that comes first is kept for the one who comes.
//
// Invariant: one release lets one wait pass; opening lets all pass, also those to come.
type gate struct {
	mu     sync.Mutex
	open   bool
	passes map[string]chan struct{}
}

func newGate() *gate {
	return &gate{passes: map[string]chan struct{}{}}
}

// wait returns a channel that is readable when the id may pass.
func (g *gate) wait(id string) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pass(id)
}

func (g *gate) release(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open {
		return
	}
	select {
	case g.pass(id) <- struct{}{}:
	default: // released before and not yet used
	}
}

func (g *gate) releaseAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open {
		return
	}
	g.open = true
	for _, pass := range g.passes {
		close(pass)
	}
}

func (g *gate) pass(id string) chan struct{} {
	pass, ok := g.passes[id]
	if !ok {
		pass = make(chan struct{}, 1)
		if g.open {
			close(pass)
		}
		g.passes[id] = pass
	}
	return pass
}
