package app

import (
	"io"
	"log/slog"

	"github.com/godwit-hq/godwit/internal/config"
)

// NewLogger makes the process's logger.
func NewLogger(c config.Log, w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.Level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
