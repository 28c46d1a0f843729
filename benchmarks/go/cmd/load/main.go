// Sends one request over and over on many connections, each waiting for an answer before it sends
// again, and prints as JSON how many were answered, how long they took, and what they cost.
//
// It knows nothing of Kafka's messages: -login and -request are frames in hex. Every answer must
// have the length of the first one, which is printed for the caller to decode.
package main

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Clock ticks of /proc: USER_HZ is 100 on every Linux that Go runs on.
const ticksPerSecond = 100

type result struct {
	Answer        string  `json:"answer"`
	Requests      int     `json:"requests"`
	Seconds       float64 `json:"seconds"`
	P50           float64 `json:"p50_seconds"`
	P99           float64 `json:"p99_seconds"`
	ServerSeconds float64 `json:"server_cpu_seconds"`
	OwnSeconds    float64 `json:"own_cpu_seconds"`
}

// A connection counts only what it begins in the phase that is measured.
const (
	warming = iota
	measuring
	stopping
)

var phase atomic.Int32

func main() {
	address := flag.String("address", "", "host:port of the broker")
	login := flag.String("login", "", "frames to send first on each connection, in hex, by commas")
	request := flag.String("request", "", "the frame to send over and over, in hex")
	connections := flag.Int("connections", 64, "how many connections")
	warmUp := flag.Duration("warm-up", time.Second, "how long before anything is measured")
	measured := flag.Duration("measure", 4*time.Second, "how long to measure")
	servers := flag.String("pids", "", "the processes of the server, by commas")
	flag.Parse()

	clients := make([]*client, *connections)
	for i := range clients {
		clients[i] = connect(*address, frames(*login))
	}
	frame := frames(*request)[0]
	answer := clients[0].exchange(frame)
	told := result{Answer: hex.EncodeToString(answer)}

	var running sync.WaitGroup
	for _, each := range clients {
		running.Go(func() { each.repeat(frame, len(answer)) })
	}
	time.Sleep(*warmUp)
	server, own := processSeconds(*servers), processSeconds(strconv.Itoa(os.Getpid()))
	begin := time.Now()
	phase.Store(measuring)
	time.Sleep(*measured)
	phase.Store(stopping)
	told.Seconds = time.Since(begin).Seconds()
	told.ServerSeconds = processSeconds(*servers) - server
	told.OwnSeconds = processSeconds(strconv.Itoa(os.Getpid())) - own
	running.Wait()

	var all []time.Duration
	for _, each := range clients {
		all = append(all, each.taken...)
	}
	if len(all) == 0 {
		log.Fatal("nothing was answered")
	}
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	told.Requests = len(all)
	told.P50 = all[len(all)/2].Seconds()
	told.P99 = all[len(all)*99/100].Seconds()
	json.NewEncoder(os.Stdout).Encode(told)
}

type client struct {
	connection net.Conn
	buffer     []byte
	taken      []time.Duration
}

func connect(address string, login [][]byte) *client {
	connection, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	// Once for all: a deadline for each request would be a good part of its cost.
	connection.SetDeadline(time.Now().Add(5 * time.Minute))
	made := &client{connection, make([]byte, 1<<20), make([]time.Duration, 0, 1<<16)}
	for _, frame := range login {
		made.exchange(frame)
	}
	return made
}

// exchange sends a frame and returns the payload of the answer, which the next call overwrites.
func (c *client) exchange(frame []byte) []byte {
	if _, err := c.connection.Write(frame); err != nil {
		log.Fatal(err)
	}
	read, err := io.ReadAtLeast(c.connection, c.buffer, 4)
	if err != nil {
		log.Fatal(err)
	}
	end := 4 + int(binary.BigEndian.Uint32(c.buffer))
	if end > len(c.buffer) {
		log.Fatalf("an answer of %d bytes", end)
	}
	if read < end {
		if _, err := io.ReadFull(c.connection, c.buffer[read:end]); err != nil {
			log.Fatal(err)
		}
	}
	return c.buffer[4:end]
}

func (c *client) repeat(frame []byte, length int) {
	for {
		now := phase.Load()
		if now == stopping {
			c.connection.Close()
			return
		}
		begin := time.Now()
		answer := c.exchange(frame)
		taken := time.Since(begin)
		if len(answer) != length {
			log.Fatalf("an answer of %d bytes after one of %d", len(answer), length)
		}
		if now == measuring && phase.Load() == measuring {
			c.taken = append(c.taken, taken)
		}
	}
}

func frames(text string) [][]byte {
	var made [][]byte
	for part := range strings.SplitSeq(text, ",") {
		frame, err := hex.DecodeString(part)
		if err != nil {
			log.Fatal(err)
		}
		if len(frame) > 0 {
			made = append(made, frame)
		}
	}
	return made
}

// processSeconds returns the user and system time of processes so far.
func processSeconds(pids string) float64 {
	total := 0
	for pid := range strings.SplitSeq(pids, ",") {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", pid))
		if err != nil {
			log.Fatal(err)
		}
		// The name in parentheses may hold spaces; utime and stime are the 14th and 15th field.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		for _, field := range fields[11:13] {
			ticks, err := strconv.Atoi(field)
			if err != nil {
				log.Fatal(err)
			}
			total += ticks
		}
	}
	return float64(total) / ticksPerSecond
}
