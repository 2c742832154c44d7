package profile

import (
	"encoding/json"
	"encoding/xml"
	"strconv"
	"strings"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// multiStatus reads a 207 under agreement: accepted only if every element is, terminal if any element is terminal or the body
// cannot be read, else transient (EDS T-7). It reads WebDAV's XML, and JSON: an array of objects with a numeric `status`, bare
// or under `responses`.
func multiStatus(x *godwit.Exchange, p *godwit.Policy, table statusTable) godwit.Outcome {
	codes := multiStatusCodes(x.Body)
	if len(codes) == 0 || x.BodyCapped {
		return godwit.Terminal
	}
	worst := godwit.Accepted
	for _, code := range codes {
		outcome := table(code)
		if code >= 200 && code <= 299 && code != 207 {
			outcome = godwit.Accepted
		}
		if agreed, ok := p.Statuses[code]; ok {
			outcome = agreed
		}
		switch outcome {
		case godwit.Terminal:
			return godwit.Terminal
		case godwit.Transient:
			worst = godwit.Transient
		}
	}
	return worst
}

func multiStatusCodes(body []byte) []int {
	type element struct {
		Status int `json:"status"`
	}
	var list []element
	if json.Unmarshal(body, &list) != nil {
		var wrapped struct {
			Responses []element `json:"responses"`
		}
		if json.Unmarshal(body, &wrapped) != nil {
			return davCodes(body)
		}
		list = wrapped.Responses
	}
	var codes []int
	for _, e := range list {
		if e.Status == 0 {
			return nil // an element without a status
		}
		codes = append(codes, e.Status)
	}
	return codes
}

func davCodes(body []byte) []int {
	var dav struct {
		Responses []struct {
			Status    string `xml:"status"`
			Propstats []struct {
				Status string `xml:"status"`
			} `xml:"propstat"`
		} `xml:"response"`
	}
	if xml.Unmarshal(body, &dav) != nil {
		return nil
	}
	var codes []int
	for _, r := range dav.Responses {
		lines := []string{}
		if r.Status != "" {
			lines = append(lines, r.Status)
		}
		for _, ps := range r.Propstats {
			lines = append(lines, ps.Status)
		}
		if len(lines) == 0 {
			return nil
		}
		for _, line := range lines {
			fields := strings.Fields(line)
			if len(fields) < 2 {
				return nil
			}
			code, err := strconv.Atoi(fields[1])
			if err != nil {
				return nil
			}
			codes = append(codes, code)
		}
	}
	return codes
}
