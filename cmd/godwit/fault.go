package main

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/godwit-hq/godwit/command"
)

// faultVariable makes `godwit dev` kill itself at a step of command execution, as in "called:3": the third time that a
// call was made and the ledger does not hold its result yet. It is for crash tests; command.FaultPoints lists the steps.
const faultVariable = "GODWIT_DEV_FAULT"

func dieAt(where string) func(*command.Config) {
	point, count, ok := strings.Cut(where, ":")
	n, err := strconv.ParseInt(count, 10, 64)
	if !ok || err != nil {
		return nil
	}
	var left atomic.Int64
	left.Store(n)
	return func(c *command.Config) {
		c.Fault = func(at string) {
			if at != point || left.Add(-1) != 0 {
				return
			}
			self, err := os.FindProcess(os.Getpid())
			if err == nil && self.Kill() == nil {
				select {} // block until the kill takes effect
			}
		}
	}
}
