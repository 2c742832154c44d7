//go:build windows

package sqlite

// syncDirectory does nothing: Windows makes entries of directories durable by itself and offers no call for it.
func syncDirectory(string) error { return nil }
