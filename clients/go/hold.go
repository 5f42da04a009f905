// Package hold holds a GPU by the lock that all programs of a machine share: docs/standard.md, version 1.
package hold

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
)

func directory() string {
	if dir := os.Getenv("BERTH_DIR"); dir != "" {
		return dir
	}
	_, err := os.Stat("/run/berth")
	return map[bool]string{true: "/run/berth", false: "/tmp/berth"}[err == nil]
}

// Whether a process has a ticket in this folder whose name begins so. The kernel knows. While others
// unlock, it may leave out a lock in one reading.
func isAlive(folder, start string) bool {
	inodes := []string{}
	entries, _ := os.ReadDir(folder)
	for _, entry := range entries {
		info, err := entry.Info()
		// What others than its owner may write is nobody's ticket.
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o022 == 0 && strings.HasPrefix(entry.Name(), start) {
			inodes = append(inodes, fmt.Sprint(info.Sys().(*syscall.Stat_t).Ino))
		}
	}
	if len(inodes) == 0 {
		return false
	}
	ours := regexp.MustCompile(`(?m)^\d+: OFDLCK +\S+ +WRITE .*:(` + strings.Join(inodes, "|") + `) `)
	for range [5]int{} {
		if locks, _ := os.ReadFile("/proc/locks"); ours.Match(locks) {
			return true
		}
	}
	return false
}

// HasByLease says whether this process runs inside a lease that has the GPU.
func HasByLease(uuid string) bool {
	folder, text := directory(), []byte{}
	for _, lease := range strings.Split(os.Getenv("BERTH_LEASE"), "/") {
		if lease == "" || !isAlive(folder+"/leases", lease) {
			return false
		}
		text, _ = os.ReadFile(folder + "/leases/" + lease)
		folder += "/inside/" + lease
	}
	return strings.Contains(string(text), "\ndevice="+uuid+"\n")
}

// TryHold gives the descriptor that holds the GPU, close-on-exec. -1: somebody has it, or waits for a GPU.
func TryHold(uuid string, share bool) (int, error) {
	path := directory() + "/devices/" + regexp.MustCompile("[^A-Za-z0-9-]").ReplaceAllString(uuid, "_")
	if isAlive(directory()+"/queue", "") {
		return -1, nil
	}
	safely := syscall.O_RDWR | syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_NOCTTY | syscall.O_CLOEXEC
	file, err := syscall.Open(path, safely, 0)
	if err != nil {
		return -1, fmt.Errorf("%s: %w; an administrator can make it: sudo berth init", path, err)
	}
	var held, there syscall.Stat_t
	how := map[bool]int{true: syscall.LOCK_SH, false: syscall.LOCK_EX}[share] | syscall.LOCK_NB
	if syscall.Flock(file, how) == nil && syscall.Fstat(file, &held) == nil && syscall.Lstat(path, &there) == nil &&
		there.Mode&syscall.S_IFMT == syscall.S_IFREG && held.Dev == there.Dev && held.Ino == there.Ino {
		return file, nil
	}
	return -1, syscall.Close(file)
}
