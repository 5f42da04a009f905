// example [--share] [--wait] UUID COMMAND…: the command runs while it holds the GPU. Status 75: it is taken.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"berth.example/hold"
)

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(69)
	}
}

func main() {
	words, share, wait := os.Args[1:], false, false
	for ; words[0] == "--share" || words[0] == "--wait"; words = words[1:] {
		share, wait = share || words[0] == "--share", wait || words[0] == "--wait"
	}
	uuid, command := words[0], words[1:]
	for !hold.HasByLease(uuid) {
		file, err := hold.TryHold(uuid, share)
		fail(err)
		if file >= 0 {
			// The command holds the GPU as long as it lives.
			syscall.Syscall(syscall.SYS_FCNTL, uintptr(file), syscall.F_SETFD, 0)
			break
		}
		if !wait {
			os.Exit(75)
		}
		time.Sleep(time.Second)
	}
	os.Setenv("CUDA_VISIBLE_DEVICES", uuid)
	program, err := exec.LookPath(command[0])
	fail(err)
	fail(syscall.Exec(program, command, os.Environ()))
}
