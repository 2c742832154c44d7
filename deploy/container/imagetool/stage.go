package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// stage is the last stage of a Containerfile.
type stage struct {
	copies []copyStep
	config imageConfig
}

// copyStep is a COPY of one file or directory.
type copyStep struct {
	from     string // an earlier stage
	source   string
	target   string
	uid, gid int
}

// imageConfig is the part of an image's configuration that says how to run it. Its names are those of the OCI image
// specification; Healthcheck is Docker's extension, which other programs ignore.
type imageConfig struct {
	User         string              `json:",omitempty"`
	ExposedPorts map[string]struct{} `json:",omitempty"`
	Env          []string            `json:",omitempty"`
	Entrypoint   []string            `json:",omitempty"`
	Cmd          []string            `json:",omitempty"`
	Volumes      map[string]struct{} `json:",omitempty"`
	Labels       map[string]string   `json:",omitempty"`
	StopSignal   string              `json:",omitempty"`
	Healthcheck  *healthcheck        `json:",omitempty"`
}

type healthcheck struct {
	Test        []string
	Interval    time.Duration `json:",omitempty"`
	Timeout     time.Duration `json:",omitempty"`
	StartPeriod time.Duration `json:",omitempty"`
}

// parseStage reads the last stage.
func parseStage(text string) (*stage, error) {
	var s *stage
	for _, line := range instructions(text) {
		word, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimSpace(rest)
		if strings.EqualFold(word, "FROM") {
			s = nil
			if rest == "scratch" {
				s = &stage{config: imageConfig{ExposedPorts: map[string]struct{}{}, Volumes: map[string]struct{}{}, Labels: map[string]string{}}}
			}
			continue
		}
		if s == nil {
			continue // an earlier stage
		}
		if err := s.add(strings.ToUpper(word), rest); err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
	}
	if s == nil {
		return nil, fmt.Errorf("the last stage must begin FROM scratch")
	}
	return s, nil
}

// instructions returns the instructions, each on one line, without comments.
func instructions(text string) []string {
	var all []string
	continued := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		part, more := strings.CutSuffix(line, `\`)
		if continued {
			all[len(all)-1] += " " + strings.TrimSpace(part)
		} else {
			all = append(all, strings.TrimSpace(part))
		}
		continued = more
	}
	return all
}

func (s *stage) add(word, rest string) (err error) {
	c := &s.config
	switch word {
	case "COPY":
		return s.addCopy(strings.Fields(rest))
	case "USER":
		c.User = rest
	case "EXPOSE":
		c.ExposedPorts[rest+"/tcp"] = struct{}{}
	case "VOLUME":
		c.Volumes[rest] = struct{}{}
	case "STOPSIGNAL":
		c.StopSignal = rest
	case "ENV":
		c.Env, err = assignments(rest)
	case "LABEL":
		var all []string
		all, err = assignments(rest)
		for _, a := range all {
			name, value, _ := strings.Cut(a, "=")
			c.Labels[name] = value
		}
	case "ENTRYPOINT":
		err = json.Unmarshal([]byte(rest), &c.Entrypoint)
	case "CMD":
		err = json.Unmarshal([]byte(rest), &c.Cmd)
	case "HEALTHCHECK":
		c.Healthcheck, err = parseHealthcheck(rest)
	default:
		err = fmt.Errorf("imagetool does not know this instruction")
	}
	return err
}

func (s *stage) addCopy(fields []string) error {
	var (
		step  copyStep
		paths []string
	)
	for _, f := range fields {
		option, value, _ := strings.Cut(f, "=")
		switch {
		case option == "--from":
			step.from = value
		case option == "--chown":
			if n, err := fmt.Sscanf(value, "%d:%d", &step.uid, &step.gid); n != 2 || err != nil {
				return fmt.Errorf("--chown must be UID:GID: scratch has no names")
			}
		case strings.HasPrefix(f, "--"):
			return fmt.Errorf("imagetool does not know %s", option)
		default:
			paths = append(paths, f)
		}
	}
	if len(paths) != 2 || step.from == "" {
		return fmt.Errorf("write COPY --from=STAGE SOURCE TARGET")
	}
	step.source, step.target = paths[0], paths[1]
	s.copies = append(s.copies, step)
	return nil
}

var assignment = regexp.MustCompile(`([A-Za-z_][\w.]*)=("[^"]*"|\S+)\s*`)

// assignments reads NAME=value NAME="a value".
func assignments(s string) ([]string, error) {
	var all []string
	for s != "" {
		m := assignment.FindStringSubmatch(s)
		if m == nil || !strings.HasPrefix(s, m[0]) {
			return nil, fmt.Errorf("not an assignment: %s", s)
		}
		value := m[2]
		if unquoted, err := strconv.Unquote(value); err == nil {
			value = unquoted
		}
		all = append(all, m[1]+"="+value)
		s = s[len(m[0]):]
	}
	return all, nil
}

func parseHealthcheck(s string) (*healthcheck, error) {
	options, command, ok := strings.Cut(s, "CMD ")
	if !ok {
		return nil, fmt.Errorf("write HEALTHCHECK OPTIONS CMD [...]")
	}
	var h healthcheck
	for _, o := range strings.Fields(options) {
		name, value, _ := strings.Cut(o, "=")
		d, err := time.ParseDuration(value)
		switch {
		case err != nil:
			return nil, err
		case name == "--interval":
			h.Interval = d
		case name == "--timeout":
			h.Timeout = d
		case name == "--start-period":
			h.StartPeriod = d
		default:
			return nil, fmt.Errorf("imagetool does not know %s", name)
		}
	}
	var args []string
	if err := json.Unmarshal([]byte(command), &args); err != nil {
		return nil, fmt.Errorf("the command must be a JSON list, since scratch has no shell: %w", err)
	}
	h.Test = append([]string{"CMD"}, args...)
	return &h, nil
}
