// What is in the database: every key with its contents, in an order that two dumps can be compared in.

package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"sort"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"
)

// A dump writes bytes as hex, or, to read by eye, as text and as hex:... where they are no text.
type dump struct {
	text, ttl bool
	client    redis.UniversalClient
}

func runKeys(args []string) error {
	set, uri := flags("keys")
	match := set.String("match", "*", "only keys of this pattern")
	d := dump{}
	set.BoolVar(&d.text, "text", false, "contents as text, to read by eye; what is no text as hex:...")
	set.BoolVar(&d.ttl, "ttl", false, "with the milliseconds that a key has left, -1 for ever")
	at, err := parse(set, uri, args)
	if err != nil {
		return err
	}
	if d.client, err = rawClient(at); err != nil {
		return err
	}
	defer d.client.Close()
	ctx := context.Background()
	keys, err := allKeys(ctx, d.client, *match)
	if err != nil {
		return err
	}
	for _, key := range keys {
		line, err := d.line(ctx, key)
		if err != nil {
			return fmt.Errorf("key %q: %w", key, err)
		}
		if line != nil {
			emit(line)
		}
	}
	return nil
}

// allKeys looks at every master of a cluster.
func allKeys(ctx context.Context, client redis.UniversalClient, match string) ([]string, error) {
	seen := map[string]bool{}
	var mu sync.Mutex
	scan := func(ctx context.Context, node *redis.Client) error {
		it := node.Scan(ctx, 0, match, 1000).Iterator()
		for it.Next(ctx) {
			mu.Lock()
			seen[it.Val()] = true
			mu.Unlock()
		}
		return it.Err()
	}
	var err error
	switch c := client.(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(ctx, scan)
	case *redis.Client:
		err = scan(ctx, c)
	default:
		err = fmt.Errorf("unexpected client %T", client)
	}
	keys := make([]string, 0, len(seen))
	for key := range seen {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys, err
}

// line describes one key, or gives nil if it ended meanwhile.
func (d dump) line(ctx context.Context, key string) (object, error) {
	kind, err := d.client.Type(ctx, key).Result()
	if err != nil {
		return nil, err
	}
	var value any
	switch kind {
	case "none":
		return nil, nil
	case "string":
		value, err = d.stringOf(ctx, key)
	case "list":
		value, err = d.members(d.client.LRange(ctx, key, 0, -1).Result())
	case "set":
		members, readErr := d.client.SMembers(ctx, key).Result()
		sort.Strings(members)
		value, err = d.members(members, readErr)
	case "zset":
		value, err = d.scored(ctx, key)
	case "hash":
		value, err = d.fields(ctx, key)
	default:
		err = fmt.Errorf("unexpected type %q", kind)
	}
	if err != nil {
		return nil, err
	}
	line := object{"type": kind, "value": value}
	line.putBytes("key", []byte(key))
	if d.ttl {
		left, err := d.client.PTTL(ctx, key).Result()
		if err != nil {
			return nil, err
		}
		line["ttl_ms"] = int64(-1)
		if left > 0 {
			line["ttl_ms"] = left.Milliseconds()
		}
	}
	return line, nil
}

func (d dump) bytes(s string) string {
	switch {
	case !d.text:
		return hex.EncodeToString([]byte(s))
	case utf8.ValidString(s):
		return s
	default:
		return "hex:" + hex.EncodeToString([]byte(s))
	}
}

func (d dump) stringOf(ctx context.Context, key string) (any, error) {
	s, err := d.client.Get(ctx, key).Result()
	return d.bytes(s), err
}

func (d dump) members(members []string, err error) (any, error) {
	out := make([]string, 0, len(members))
	for _, m := range members {
		out = append(out, d.bytes(m))
	}
	return out, err
}

// scored gives pairs of member and score in Redis's own order, the score as text so that no digit is lost.
func (d dump) scored(ctx context.Context, key string) (any, error) {
	members, err := d.client.ZRangeWithScores(ctx, key, 0, -1).Result()
	out := make([][2]string, 0, len(members))
	for _, m := range members {
		name, ok := m.Member.(string)
		if !ok {
			return nil, fmt.Errorf("unexpected member %T", m.Member)
		}
		out = append(out, [2]string{d.bytes(name), strconv.FormatFloat(m.Score, 'f', -1, 64)})
	}
	return out, err
}

// fields gives pairs of field and value, sorted by field.
func (d dump) fields(ctx context.Context, key string) (any, error) {
	hash, err := d.client.HGetAll(ctx, key).Result()
	names := make([]string, 0, len(hash))
	for name := range hash {
		names = append(names, name)
	}
	sort.Strings(names)
	out := make([][2]string, 0, len(names))
	for _, name := range names {
		out = append(out, [2]string{d.bytes(name), d.bytes(hash[name])})
	}
	return out, err
}
