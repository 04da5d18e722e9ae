// Payloads that say when their task was to run, and how late handlers were.
//
// A payload of 100 bytes begins with a time in microseconds since 1970 and the task's number, eight bytes each.

package main

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"sync/atomic"
	"time"
)

const payloadSize = 100

// payload is 100 bytes without a stamp.
func payload() []byte {
	return bytes.Repeat([]byte("x"), payloadSize)
}

// stamped is a payload with this time and number.
func stamped(micros int64, number int) []byte {
	bytes := payload()
	binary.BigEndian.PutUint64(bytes, uint64(micros))
	binary.BigEndian.PutUint64(bytes[8:], uint64(number))
	return bytes
}

// lateness holds by how many microseconds each task was late.
type lateness []atomic.Int64

func newLateness(tasks int) lateness {
	late := make(lateness, tasks)
	for i := range late {
		late[i].Store(math.MinInt64)
	}
	return late
}

// note says that the task of this payload begins now.
func (l lateness) note(payload []byte) {
	now := time.Now().UnixMicro()
	number := binary.BigEndian.Uint64(payload[8:])
	l[number].Store(now - int64(binary.BigEndian.Uint64(payload)))
}

// write puts them into a file, eight bytes each, the lowest first.
func (l lateness) write(file string) error {
	var all []byte
	for i := range l {
		all = binary.LittleEndian.AppendUint64(all, uint64(l[i].Load()))
	}
	return os.WriteFile(file, all, 0o600)
}
