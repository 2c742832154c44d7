package faultdisk

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	lib "modernc.org/sqlite/lib"
)

// An Op is a kind of operation that may fail or at which the power may be cut.
type Op string

// Operations. Map makes the index of the WAL longer.
const (
	Open     Op = "open"
	Write    Op = "write"
	Truncate Op = "truncate"
	Sync     Op = "sync"
	Delete   Op = "delete"
	Map      Op = "map"
)

// A Disk records what SQLite does to the files of one directory.
type Disk struct {
	dir string

	mu      sync.Mutex
	random  *rand.Rand
	count   int64
	counts  map[Op]int64
	cutAt   int64 // the operation at which the power is cut; 0: none
	onCut   func()
	dead    bool
	lies    bool
	fault   *Fault
	matched int64 // operations that the fault selects
	failed  int64

	sequence int64
	files    map[string]*node // as the program sees the directory
	entries  map[string]*node // as it was when it was last synced
	pending  []entry          // changes of the directory since then
}

// An entry is a change of the directory: a file appears, or goes if node is nil.
type entry struct {
	sequence int64
	name     string
	node     *node
}

// A node is a file's content, whatever its name.
type node struct {
	durable []byte
	changes []change // since the last sync
}

// A change is a write, or a truncation to size if data is nil.
type change struct {
	sequence int64
	off      int64
	data     []byte
	size     int64
}

// An openFile is a handle of a file.
type openFile struct {
	disk *Disk
	name string
	node *node
	// syncsDir is set for a new journal or WAL: SQLite syncs the directory together with its first sync.
	syncsDir bool
}

// New records the files of a directory from now on. Its present content is durable. The random numbers decide what a failed
// sync and a cut leave.
func New(dir string, random *rand.Rand) (*Disk, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	d := &Disk{dir: dir, random: random, counts: map[Op]int64{}, files: map[string]*node{}, entries: map[string]*node{}}
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read disk: %w", err)
	}
	for _, e := range list {
		if !recorded(e.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("read disk: %w", err)
		}
		n := &node{durable: content}
		d.files[e.Name()], d.entries[e.Name()] = n, n
	}
	registry.Lock()
	defer registry.Unlock()
	if disks[dir] != nil {
		return nil, fmt.Errorf("%s is a disk already", dir)
	}
	disks[dir] = d
	return d, nil
}

// Close ends the recording. The files must be closed.
func (d *Disk) Close() {
	registry.Lock()
	defer registry.Unlock()
	delete(disks, d.dir)
}

// CutAt cuts the power at the n-th operation from now on. Operations fail after the cut. then is called during the cut, while no
// other operation makes progress; it may end the process.
func (d *Disk) CutAt(n int64, then func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cutAt, d.onCut = d.count+n, then
}

// Lie makes syncs succeed without effect, as a disk does that answers from its cache. The checks of a test must find this out.
func (d *Disk) Lie() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lies = true
}

// Cut cuts the power now.
func (d *Disk) Cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cut()
}

func (d *Disk) cut() {
	if !d.dead {
		d.dead = true
		if d.onCut != nil {
			d.onCut()
		}
	}
}

// Operations returns the number of operations so far, of all kinds and of each.
func (d *Disk) Operations() (all int64, each map[Op]int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	each = map[Op]int64{}
	for op, n := range d.counts {
		each[op] = n
	}
	return d.count, each
}

func (d *Disk) off() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead
}

// begin counts an operation and returns the code with which it fails, or SQLITE_OK.
func (d *Disk) begin(op Op, name string) int32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	rc, _ := d.next(op, name)
	return rc
}

// next is begin for callers that hold the lock. cutAfter asks the caller to cut the power once the operation has had its effect.
func (d *Disk) next(op Op, name string) (rc int32, cutAfter bool) {
	if d.dead {
		return lost(op), false
	}
	d.count++
	d.counts[op]++
	if d.cutAt != 0 && d.count >= d.cutAt {
		if op == Sync && d.random.IntN(2) == 0 {
			return lib.SQLITE_OK, true
		}
		if op != Write { // a write is recorded first, so that the cut can tear it
			d.cut()
			return lost(op), false
		}
		return lib.SQLITE_OK, true
	}
	return d.failing(op, name), false
}

// lost is the code of an operation after a cut.
func lost(op Op) int32 {
	switch op {
	case Open:
		return lib.SQLITE_CANTOPEN
	case Write:
		return lib.SQLITE_IOERR_WRITE
	case Truncate:
		return lib.SQLITE_IOERR_TRUNCATE
	case Sync:
		return lib.SQLITE_IOERR_FSYNC
	case Delete:
		return lib.SQLITE_IOERR_DELETE
	default:
		return lib.SQLITE_IOERR_SHMSIZE
	}
}

// recorded reports whether SQLite writes the file by its VFS and expects it to survive.
func recorded(name string) bool {
	return filepath.Ext(name) != ".lock" && isDatabase(name) && !isShared(name)
}

func (d *Disk) opened(name string, flags int32) *openFile {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := &openFile{disk: d, name: name, node: d.files[name]}
	if f.node == nil {
		f.node = &node{}
		f.syncsDir = isJournal(flags)
		d.files[name] = f.node
		d.sequence++
		d.pending = append(d.pending, entry{sequence: d.sequence, name: name, node: f.node})
	}
	return f
}

func (d *Disk) removed(name string, synced bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files[name] != nil {
		delete(d.files, name)
		d.sequence++
		d.pending = append(d.pending, entry{sequence: d.sequence, name: name})
	}
	if synced {
		d.syncDir()
	}
}

// SyncDir is a sync of the directory by the program itself, which the VFS does not see.
func (d *Disk) SyncDir() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	rc, cutAfter := d.next(Sync, "")
	if rc != lib.SQLITE_OK {
		return syscall.EIO
	}
	if !d.lies {
		d.syncDir()
	}
	if cutAfter {
		d.cut()
		return syscall.EIO
	}
	return nil
}

func (d *Disk) syncDir() {
	for _, e := range d.pending {
		e.apply(d.entries)
	}
	d.pending = nil
}

func (e *entry) apply(entries map[string]*node) {
	if e.node == nil {
		delete(entries, e.name)
	} else {
		entries[e.name] = e.node
	}
}

// write records a write. It returns how many bytes reach the file, and the code for SQLite.
func (f *openFile) write(data []byte, off int64) (kept int, rc int32) {
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	rc, cutAfter := d.next(Write, f.name)
	kept = len(data)
	if rc != lib.SQLITE_OK {
		if d.dead {
			return 0, rc
		}
		kept = d.random.IntN(len(data)) // a disk that gets full, or breaks, may do so within a write
	}
	if kept > 0 {
		d.sequence++
		f.node.changes = append(f.node.changes, change{sequence: d.sequence, off: off, data: append([]byte(nil), data[:kept]...)})
	}
	if cutAfter {
		d.cut()
		return 0, lib.SQLITE_IOERR_WRITE
	}
	return kept, rc
}

func (f *openFile) truncate(size int64) int32 {
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if rc, _ := d.next(Truncate, f.name); rc != lib.SQLITE_OK {
		return rc
	}
	d.sequence++
	f.node.changes = append(f.node.changes, change{sequence: d.sequence, size: size})
	return lib.SQLITE_OK
}

func (f *openFile) sync() int32 {
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	rc, cutAfter := d.next(Sync, f.name)
	if rc != lib.SQLITE_OK {
		if !d.dead {
			f.node.loseSome(d.random)
		}
		return rc
	}
	if d.lies {
		if cutAfter {
			d.cut()
			return lib.SQLITE_IOERR_FSYNC
		}
		return lib.SQLITE_OK
	}
	for _, c := range f.node.changes {
		f.node.durable = c.apply(f.node.durable)
	}
	f.node.changes = nil
	if f.syncsDir {
		f.syncsDir = false
		d.syncDir()
	}
	if cutAfter {
		d.cut()
		return lib.SQLITE_IOERR_FSYNC
	}
	return lib.SQLITE_OK
}

// loseSome is a failed sync: some of the changes reached the disk, the others never will, because the system takes them for
// written. The program still reads all of them.
func (n *node) loseSome(random *rand.Rand) {
	for _, c := range n.changes {
		if random.IntN(2) == 0 {
			n.durable = c.apply(n.durable)
		}
	}
	n.changes = nil
}

// apply changes a content and returns it.
func (c *change) apply(content []byte) []byte {
	if c.data == nil {
		return resize(content, c.size)
	}
	if end := c.off + int64(len(c.data)); end > int64(len(content)) {
		content = resize(content, end)
	}
	copy(content[c.off:], c.data)
	return content
}

func resize(content []byte, size int64) []byte {
	if size <= int64(len(content)) {
		return content[:size]
	}
	if size <= int64(cap(content)) {
		old := len(content)
		content = content[:size]
		clear(content[old:])
		return content
	}
	longer := make([]byte, size, size+size/2)
	copy(longer, content)
	return longer
}
