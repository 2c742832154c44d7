package main

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/management"
)

type keysRingCommand struct{}

// Help returns the text that --help shows.
func (keysRingCommand) Help() string {
	return `Prints a line for a key ring. The first line encrypts, all lines decrypt. To change the key: put a new line in
front, restart the servers, run "godwit keys reencrypt", then remove the old lines.

Examples:

    godwit keys ring > keyring && chmod 600 keyring
    (godwit keys ring; cat keyring) > keyring.new && mv keyring.new keyring`
}

func (keysRingCommand) Run(env *environment) error {
	_, err := fmt.Fprintln(env.stdout, app.GenerateRing())
	return err
}

type keysReencryptCommand struct {
	onStore `embed:""`
}

// Help returns the text that --help shows.
func (keysReencryptCommand) Help() string {
	return `Run it after a new key was put in front of the key ring and the servers were restarted with it. It may run beside them
and may be run again. When it ends well, the other keys can be removed from the ring; wait for the idempotency window (24h)
first if repeated requests are to get the answers that were kept for them, which are not sealed anew.

Records of commands are sealed anew with their outcomes, whatever their window. Those under way are left to the server that
executes them: the command then says how many, and ends with 1; run it again when they have ended. So it does when a record
is not as it was written, and names it.`
}

func (c *keysReencryptCommand) Run(env *environment) error {
	_, st, err := c.open(env)
	if err != nil {
		return err
	}
	defer st.Close()
	ring, err := app.OpenRing(&c.Storage, app.NewLogger(config.Log{Format: "text"}, env.stderr))
	if err != nil {
		return err
	}
	done, err := management.Reencrypt(env.ctx, st, ring, func(r management.Reencryption) {
		fmt.Fprintf(env.stderr, "%d looked at, %d sealed anew\n", r.Seen, r.Resealed)
	})
	if err != nil {
		return err
	}
	commands, err := command.Reseal(env.ctx, st, ring, time.Now)
	if err != nil {
		return err
	}
	for _, id := range commands.Broken {
		fmt.Fprintf(env.stderr, "the record of command %s opens with no key of the ring, or is not as it was written\n", id)
	}
	if len(commands.Broken) == 0 && commands.UnderWay == 0 {
		if err := app.ResealRingCheck(env.ctx, st, ring); err != nil {
			return err
		}
	}
	switch {
	case len(commands.Broken) > 0:
		return fmt.Errorf("%d records of commands could not be sealed anew: keep the other keys", len(commands.Broken))
	case commands.UnderWay > 0:
		return fmt.Errorf("%d commands are under way or await confirmation, and still sealed with another key: keep it, and run this again when they have ended", commands.UnderWay)
	}
	fmt.Fprintf(env.stdout, "all %d values are sealed with key %s; %d were changed now\n", done.Seen+commands.Seen, ring.Active(), done.Resealed+commands.Resealed)
	return nil
}

type keysAdoptEvidenceCommand struct {
	Key     string `arg:"" help:"File with the new private key (Ed25519, PEM)." placeholder:"FILE"`
	onStore `embed:""`
}

// Help returns the text that --help shows.
func (keysAdoptEvidenceCommand) Help() string {
	return `A store remembers which key its evidence is signed with, and a server with another key refuses to start. Run this when that key
is lost or has to be replaced, with all servers stopped; then start them with --commands-evidence-key FILE. Exports verify with
the new key alone (godwit evidence verify --key); keep an export that was made with the old one.

Example:

    openssl genpkey -algorithm ed25519 -out evidence.key
    godwit keys adopt-evidence evidence.key --store postgres://godwit@db/godwit --keyring-file /etc/godwit/keyring`
}

func (c *keysAdoptEvidenceCommand) Run(env *environment) error {
	_, st, err := c.open(env)
	if err != nil {
		return err
	}
	defer st.Close()
	cfg := config.Config{Storage: c.Storage}
	cfg.Commands.EvidenceKey = c.Key
	key, err := app.EvidenceKey(&cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if err := app.AdoptEvidenceKey(env.ctx, st, key); err != nil {
		return err
	}
	fmt.Fprintln(env.stderr, "evidence of this store is signed with the key in", c.Key, "from now on")
	return nil
}
