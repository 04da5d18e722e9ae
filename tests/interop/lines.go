// The line protocol: how lines are read and written, and how bytes and times look in them.

package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
	"unicode/utf8"
)

// An object is one line of output; its fields come out sorted by name.
type object map[string]any

// with adds the fields of more and returns the object.
func (o object) with(more object) object {
	for name, value := range more {
		o[name] = value
	}
	return o
}

// putBytes writes bytes as text where they are text, and under NAME_base64 where they are not.
func (o object) putBytes(name string, b []byte) {
	if utf8.Valid(b) {
		o[name] = string(b)
		return
	}
	o[name+"_base64"] = base64.StdEncoding.EncodeToString(b)
}

// putTime writes milliseconds since 1970 under NAME_at_ms, or nothing for Go's zero time.
func (o object) putTime(name string, t time.Time) {
	if !t.IsZero() {
		o[name+"_at_ms"] = t.UnixMilli()
	}
}

var output struct {
	sync.Mutex
}

// emit prints one line in one write, whichever goroutine calls.
func emit(o object) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(o); err != nil {
		panic(fmt.Sprintf("a line that cannot be written as JSON: %v", err))
	}
	output.Lock()
	defer output.Unlock()
	// A driver that closed its end is gone, and nobody is left to be told.
	_, _ = os.Stdout.Write(line.Bytes())
}

// eachLine calls f with every line that is not blank, however long it is.
func eachLine(r io.Reader, f func(line []byte) error) error {
	in := bufio.NewReaderSize(r, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if err := f(line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading standard input: %w", err)
		}
	}
}

// decodeStrictly refuses unknown fields, so that a misspelt option is an error and not a default.
func decodeStrictly(line []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if dec.More() {
		return errors.New("expected one JSON object on the line, got more")
	}
	return nil
}

// payload gives the bytes of the one field that is set, and nil if none is: asynq tells nil and empty apart.
func payload(text, b64 *string, raw json.RawMessage) ([]byte, error) {
	given := 0
	out := []byte(nil)
	if text != nil {
		given++
		out = []byte(*text)
	}
	if b64 != nil {
		given++
		decoded, err := base64.StdEncoding.DecodeString(*b64)
		if err != nil {
			return nil, fmt.Errorf("payload_base64: %w", err)
		}
		out = decoded
	}
	if raw != nil {
		given++
		out = raw
	}
	if given > 1 {
		return nil, errors.New("expected one of payload, payload_base64 and payload_json, got more")
	}
	return out, nil
}
