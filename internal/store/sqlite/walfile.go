package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// A File is a file of the database that the store reads and writes beside SQLite.
type File interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
	Close() error
}

func openFile(path string) (File, error) { return os.OpenFile(path, os.O_RDWR, 0) }

// The format of a WAL: https://sqlite.org/fileformat2.html#the_write_ahead_log
const (
	walHeaderSize   = 32
	frameHeaderSize = 24
	walMagic        = 0x377f0682 // plus 1 if checksums are big-endian
	// rewriteFrames is how many frames are read and written at a time.
	rewriteFrames = 256
)

// errLostFrames reports that the WAL no longer has what SQLite wrote to it.
var errLostFrames = errors.New("the disk lost a part of the WAL that was not synced; restart the server, which keeps everything acknowledged")

// A walFile is the WAL as a file.
type walFile struct {
	File
	frames    int64 // committed
	pageSize  int64
	frameSize int64
	order     binary.ByteOrder
	salt      [8]byte
	sum       [2]uint32 // of everything up to the frame that is read next
}

// openWAL reads the header.
func openWAL(f File, frames int64) (*walFile, error) {
	var h [walHeaderSize]byte
	if _, err := f.ReadAt(h[:], 0); err != nil {
		return nil, fmt.Errorf("read WAL: %w", err)
	}
	w := &walFile{File: f, frames: frames, pageSize: int64(binary.BigEndian.Uint32(h[8:])), salt: [8]byte(h[16:24])}
	w.frameSize = frameHeaderSize + w.pageSize
	switch binary.BigEndian.Uint32(h[:]) {
	case walMagic:
		w.order = binary.LittleEndian
	case walMagic + 1:
		w.order = binary.BigEndian
	default:
		return nil, errLostFrames
	}
	if w.pageSize < 512 || w.pageSize > 65536 || w.pageSize%8 != 0 {
		return nil, errLostFrames
	}
	w.add(h[:24])
	if !w.matches(h[24:]) {
		return nil, errLostFrames
	}
	return w, nil
}

// add continues the checksum.
func (w *walFile) add(b []byte) {
	for ; len(b) >= 8; b = b[8:] {
		w.sum[0] += w.order.Uint32(b) + w.sum[1]
		w.sum[1] += w.order.Uint32(b[4:]) + w.sum[0]
	}
}

func (w *walFile) matches(sum []byte) bool {
	return binary.BigEndian.Uint32(sum) == w.sum[0] && binary.BigEndian.Uint32(sum[4:]) == w.sum[1]
}

func (w *walFile) offset(frame int64) int64 { return walHeaderSize + (frame-1)*w.frameSize }

// rewrite writes all committed frames again, as they are, and syncs them. It checks that they are what SQLite wrote.
func (w *walFile) rewrite() error {
	var h [walHeaderSize]byte
	if _, err := w.ReadAt(h[:], 0); err != nil {
		return fmt.Errorf("read WAL: %w", err)
	}
	if _, err := w.WriteAt(h[:], 0); err != nil {
		return fmt.Errorf("write WAL again: %w", err)
	}
	buf := make([]byte, min(w.frames, rewriteFrames)*w.frameSize)
	for first := int64(1); first <= w.frames; first += rewriteFrames {
		part := buf[:min(w.frames-first+1, rewriteFrames)*w.frameSize]
		if _, err := w.ReadAt(part, w.offset(first)); err != nil {
			return fmt.Errorf("read WAL: %w", err)
		}
		for rest := part; len(rest) > 0; rest = rest[w.frameSize:] {
			w.add(rest[:8])
			w.add(rest[frameHeaderSize:w.frameSize])
			if [8]byte(rest[8:16]) != w.salt || !w.matches(rest[16:]) {
				return errLostFrames
			}
		}
		if _, err := w.WriteAt(part, w.offset(first)); err != nil {
			return fmt.Errorf("write WAL again: %w", err)
		}
	}
	if err := w.Sync(); err != nil {
		return fmt.Errorf("sync WAL: %w", err)
	}
	return nil
}

// copyAgain writes the pages of the first copied frames to the database file, as a checkpoint did. The caller syncs it.
func (w *walFile) copyAgain(db File, copied int64) error {
	var h [frameHeaderSize]byte
	if _, err := w.ReadAt(h[:], w.offset(w.frames)); err != nil { // a commit's last frame has the size of the database
		return fmt.Errorf("read WAL: %w", err)
	}
	size := binary.BigEndian.Uint32(h[4:])
	newest := map[uint32]int64{}
	for frame := int64(1); frame <= copied; frame++ {
		if _, err := w.ReadAt(h[:], w.offset(frame)); err != nil {
			return fmt.Errorf("read WAL: %w", err)
		}
		if page := binary.BigEndian.Uint32(h[:]); page >= 1 && page <= size {
			newest[page] = frame
		}
	}
	buf := make([]byte, w.pageSize)
	for page, frame := range newest {
		if _, err := w.ReadAt(buf, w.offset(frame)+frameHeaderSize); err != nil {
			return fmt.Errorf("read WAL: %w", err)
		}
		if _, err := db.WriteAt(buf, int64(page-1)*w.pageSize); err != nil {
			return fmt.Errorf("write database again: %w", err)
		}
	}
	return nil
}

// rewriteHeader writes the first page of the database again: without it the database would seem empty, and SQLite would delete the WAL.
func rewriteHeader(db File) error {
	var h [18]byte
	if _, err := db.ReadAt(h[:], 0); err != nil {
		return fmt.Errorf("read database: %w", err)
	}
	size := int(binary.BigEndian.Uint16(h[16:]))
	if size == 1 { // 65536 does not fit
		size = 65536
	}
	page := make([]byte, size)
	if _, err := db.ReadAt(page, 0); err != nil {
		return fmt.Errorf("read database: %w", err)
	}
	if _, err := db.WriteAt(page, 0); err != nil {
		return fmt.Errorf("write database again: %w", err)
	}
	return nil
}
