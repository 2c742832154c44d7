package ojs

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// exchange makes a request to a process whose answer must have the status.
func exchange(t *testing.T, client *http.Client, method, url, body string, status int) object {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		t.Fatalf("%s %s: %d %v\n%s", method, url, resp.StatusCode, err, text)
	}
	var got object
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%s %s: %v\n%s", method, url, err, text)
	}
	return got
}
