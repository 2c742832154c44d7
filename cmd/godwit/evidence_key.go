package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/godwit-hq/godwit/evidence"
)

type evidenceKeyCommand struct {
	Output     string `name:"output" short:"o" help:"Write to a file, which must not exist yet. Defaults to standard output." placeholder:"FILE"`
	connection `embed:""`
}

// Help returns the text that --help shows.
func (evidenceKeyCommand) Help() string {
	return `Fetches the public key that the server signs evidence with, as PEM. Do it once, before the evidence matters, and keep the
file where the server's operator cannot change it: verify --key then shows that a file was signed by this server.

Examples:

    GODWIT_KEY=gdw_… godwit evidence key --output evidence.pub
    godwit evidence verify march.ndjson --key evidence.pub`
}

func (c *evidenceKeyCommand) Run(env *environment) error {
	cl, err := c.client(env)
	if err != nil {
		return err
	}
	text, err := cl.EvidenceKey(env.ctx)
	if err != nil {
		return fmt.Errorf("fetch evidence key: %w", err)
	}
	key, err := evidence.ParsePublicKey(string(text))
	if err != nil {
		return fmt.Errorf("fetch evidence key: the server answered with something else: %w", err)
	}
	if text, err = evidence.MarshalPublicKey(key); err != nil { // an older server answers with JSON
		return err
	}
	if c.Output == "" {
		_, err = env.stdout.Write(text)
		return err
	}
	file, err := os.OpenFile(c.Output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	fmt.Fprintf(env.stderr, "the key is %s\n", evidence.KeyID(key))
	return nil
}
