# Everything a contributor runs. `make` alone lists the targets.
#
#   ARGS="..."   arguments for dev and bench, or for the trace tool
#   RUN=DIR      trace: use the finished test run in DIR and run no test

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
FUZZTIME ?= 10s

trace-run   := .cache/trace
tracetool   := go run ./internal/trace/tracetool -run $(or $(RUN),$(trace-run))
staticcheck := go tool -modfile=.ci/tools.mod staticcheck

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the static binary bin/godwit
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X github.com/godwit-hq/godwit/internal/telemetry.version=$(VERSION)' -o bin/godwit ./cmd/godwit

.PHONY: dev run
dev: ## run a server with sample endpoint and events, nothing to configure
	go run ./cmd/godwit dev $(ARGS)
run: dev

.PHONY: ui
ui: ## build the pages of the dashboard and the portal into internal/ui/dist (needs Node.js)
	@scripts/need-node
	cd ui && npm ci --prefer-offline --no-audit --no-fund --loglevel=error && npm run --silent check && npm run --silent build

.PHONY: ui-check
ui-check: ## check the pages, and that the committed build of them is that of their source
	@scripts/ui-check

.PHONY: test-fast
test-fast: ## run the tests that need nothing but Go: SQLite only, no race detector, no killed processes
	@scripts/test-fast

.PHONY: test
test: ## run every test with the race detector, PostgreSQL included
	@scripts/test $(trace-run)

.PHONY: trace
trace: ## run the tests, tell which requirement rows they show, write docs/conformance.md
	@$(if $(RUN),,$(MAKE) --no-print-directory test ||) true
	@$(tracetool) $(ARGS)

.PHONY: trace-record
trace-record: ## record the rows shown by the last test run (ARGS=-prune also drops lost ones)
	@$(tracetool) -record $(ARGS)

.PHONY: trace-check
trace-check: ## check the last test run against the record and docs/conformance.md
	@$(tracetool) -check $(ARGS)

.PHONY: lint
lint: ## check formatting, go vet, staticcheck
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "not formatted (gofmt -w):" $$files; exit 1; fi
	go vet ./...
	$(staticcheck) ./...

.PHONY: package-check
package-check: ## check deploy/ and all scripts with the programs that read them, as far as they are here
	@scripts/package-check

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (10s)
	@scripts/fuzz $(FUZZTIME)

.PHONY: bench
bench: build ## measure end to end, beside a raw and a non-durable baseline
	bin/godwit bench $(ARGS)

.PHONY: clean
clean: ## remove what was built
	rm -rf bin dist .cache
