package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/godwit-hq/godwit/internal/config"
)

type healthCommand struct {
	Live            bool            `name:"live" help:"Ask only whether the process answers, not whether it can accept events."`
	Within          config.Duration `name:"within" help:"How long to wait for the answer." default:"3s" placeholder:"DURATION"`
	config.FileFlag `embed:""`
	config.Config   `embed:""`
}

// Help returns the text that --help shows.
func (healthCommand) Help() string {
	return `Asks the server on this machine for /readyz, at the address that its settings name, and ends with 0 if it is ready. It needs no
API key and no other program, so a container without a shell can check itself.

The certificate of a server with https is not verified: it is made for the public name, and the command sends no secret.

Examples:

    godwit health
    godwit health --live --listen :8443`
}

func (c *healthCommand) Run(env *environment) error {
	if _, err := env.source.Origins(env.parsed); err != nil {
		return err
	}
	address, err := ownAddress(c.Listen)
	if err != nil {
		return err
	}
	scheme, path := "http", "/readyz"
	if c.Secure() {
		scheme = "https"
	}
	if c.Live {
		path = "/healthz"
	}
	ctx, cancel := context.WithTimeout(env.ctx, c.Within.Real())
	defer cancel()
	state, err := askHealth(ctx, scheme+"://"+address+path, c.ACME.Domains)
	if err != nil {
		return err
	}
	fmt.Fprintln(env.stdout, state)
	return nil
}

// ownAddress returns the address at which a process on this machine reaches a listener on the address.
func ownAddress(listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	switch {
	case err != nil:
		return "", fmt.Errorf("listen: %w", err)
	case port == "0":
		return "", errors.New("listen: with port 0 the server chooses its port, which is not known here; name it with --listen")
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	return net.JoinHostPort(host, port), nil
}

// askHealth asks for the state and returns it, or an error that says why the server is not well.
func askHealth(ctx context.Context, url string, names []string) (string, error) {
	trust := &tls.Config{InsecureSkipVerify: true} // see Help
	if len(names) > 0 {
		trust.ServerName = names[0] // ACME has certificates for its names only
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trust, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", fmt.Errorf("the server does not answer: %w", err)
	}
	defer resp.Body.Close()
	var answer struct{ Status, Reason string }
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		return "", fmt.Errorf("read the answer of %s: %w", url, err)
	}
	if json.Unmarshal(text, &answer) != nil || answer.Status == "" {
		return "", fmt.Errorf("%s answered %d, and not as a godwit server does", url, resp.StatusCode)
	}
	if resp.StatusCode != http.StatusOK {
		return "", errors.New(strings.TrimSuffix(answer.Status+": "+answer.Reason, ": "))
	}
	return answer.Status, nil
}
