# The nested modules that have tests.
MODULES = adapters/chi adapters/gin adapters/echo adapters/fiber adapters/grpc adapters/connect
FUZZTIME = 20s
GOVULNCHECK = golang.org/x/vuln/cmd/govulncheck@v1.8.0
VALE = github.com/vale-cli/vale/v3/cmd/vale@v3.21.0
DEADCODE = golang.org/x/tools/cmd/deadcode@v0.52.0
GOLANGCI_LINT = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.PHONY: help build test test-all test-rest lint fuzz bench bench-peers bench-fleet bench-page bench-gateways bench-cost cover demo release verify-release release-modules tidy metrics manifests pictures verify-replay verify-claims verify-loss verify-restarts verify-stories verify-cost mutants chaos soak clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

build: ## build bin/hotparam
	go build -o bin/hotparam ./cmd/hotparam

test: ## every package's tests with -short, and a real Redis (Debian, as root: installed if it is missing)
	@./scripts/install-test-tools redis-server
	@./scripts/test quick

test-all: test test-rest ## all tests: at full length, with the race detector, real servers, other languages, browsers, fleets (20 minutes)

test-rest:
	@./scripts/install-test-tools
	@MODULES="$(MODULES)" ./scripts/test rest

lint: ## run golangci-lint, deadcode, govulncheck and Vale (the first time they are built: minutes)
	@./scripts/prose $(VALE)
	@for module in . $(MODULES); do (cd $$module && go run $(GOLANGCI_LINT) run ./...) || exit 1; done
	@MODULES=". $(MODULES)" ./scripts/deadcode $(DEADCODE)
	@MODULES=". $(MODULES)" ./scripts/vulnerabilities $(GOVULNCHECK)

fuzz: ## run each fuzz target for FUZZTIME, and the tests with other random cases
	@FUZZTIME="$(FUZZTIME)" ./scripts/fuzz
	RAPID_SEED=0 ./scripts/test quick -short=false

bench: ## run the benchmarks with allocations
	go test -run '^$$' -bench . -benchmem ./...

PASSES = 5
bench-peers: ## compare with the peers: medians of PASSES passes, as a table (minutes)
	@cd benchmarks && for pass in $$(seq $(PASSES)); do \
		go test -run '^$$' -bench . -cpu 1 -benchtime 0.5s . || exit 1; \
	done | go run ./cmd/table

bench-fleet: ## compare limits over all instances with those of others, as a table in docs/LIMITS.md (six minutes, needs redis-server)
	cd benchmarks && go run ./cmd/fleet -page ../docs/LIMITS.md -picture ../docs/images/fleet.svg

bench-page: build ## measure with hotparam bench, as docs/BENCH.md (five minutes, needs redis-server)
	go run ./cmd/benchpage bin/hotparam docs

bench-gateways: build ## measure what the guard's doors add to a request through real gateways, as a table in docs/GATEWAYS.md (four minutes, needs redis-server and nginx)
	go run ./checks/bench/cmd/benchgateways bin/hotparam docs/GATEWAYS.md

bench-cost: build ## compare what protects PostgreSQL from one value that makes it scan a table, as a table in docs/COST.md (five minutes, needs redis-server, postgresql and Envoy)
	go run ./checks/cost/cmd/benchcost bin/hotparam docs

cover: ## test and write coverage.html
	@mkdir -p bin
	go test -coverpkg ./... -coverprofile bin/cover.out ./...
	go tool cover -html bin/cover.out -o bin/coverage.html
	@go tool cover -func bin/cover.out | tail -n 1

VERSION =
release: ## bin/archives: the archives of VERSION=v0.1.0 for Linux, their bills of materials and sums
	@go run ./checks/archives/cmd/releasearchives "$(VERSION)" bin/archives

verify-release: ## build the archives of this commit twice, in different folders, and compare them (some minutes the first time)
	@folders=$$(mktemp -d) && trap 'rm -rf "$$folders"' EXIT && \
	git clone -q . "$$folders/here" && git clone -q "$$folders/here" "$$folders/there/and/deeper" && \
	for folder in here there/and/deeper; do \
		(cd "$$folders/$$folder" && GOWORK=off go run ./checks/archives/cmd/releasearchives v0.0.0-verify bin/archives >/dev/null) || exit 1; \
	done && \
	diff -r "$$folders/here/bin/archives" "$$folders/there/and/deeper/bin/archives" && cat "$$folders/here/bin/archives/SHA256SUMS"

release-modules: ## bin/release: the files of VERSION=v0.1.0 of all modules, as a GOPROXY; prints the tags to set
	@go run ./checks/release/cmd/releasemodules "$(VERSION)" bin/release

# The adapters require a version that need not be there yet.
tidy: ## go mod tidy in all modules
	@for module in . $(MODULES); do (cd $$module && \
		{ [ $$module = . ] || go mod edit -replace github.com/hotparam/hotparam=../..; } && \
		GOWORK=off go mod tidy; status=$$?; \
		[ $$module = . ] || go mod edit -dropreplace github.com/hotparam/hotparam; exit $$status) || exit 1; done

demo: ## everything in one process, on a real access log
	go run ./cmd/hotparam demo

DATA = ../shared/data
verify-replay: build ## hold replay against an exact count, on each trace in DATA, by all kinds of threshold, sorted and in order of completion (30 minutes)
	go run ./checks/exact/cmd/verifyreplay bin/hotparam $(DATA)
	go run ./checks/exact/cmd/verifyreplay -late 9900ms bin/hotparam $(DATA)

verify-claims: ## hold the pipeline against what is claimed of its counts (10 to 20 minutes; FLAGS=-quick: one or two)
	go run ./checks/claims/cmd/verifyclaims $(FLAGS) $(DATA)

verify-loss: ## 10 and 100 real instances on a network that loses, doubles, delays and reorders packets, against what they counted (five minutes, needs redis-server)
	HOTPARAM_LOSS=full go test ./checks/e2e -run TestLossOverTheWire -v -count 1 -timeout 20m

verify-restarts: ## aggregators that restart, beside one that does not, with windows of up to ten minutes (a quarter of an hour, needs redis-server)
	HOTPARAM_RESTARTS=full go test ./checks/e2e -run TestRestartsOverTheWire -v -count 1 -timeout 30m

verify-stories: ## what goes away around Kafka, all of it, ten flash crowds by Graphite, and one answered from memory (six minutes)
	HOTPARAM_STORIES=full go test ./checks/e2e -run 'TestKafkaFaults|TestFlashCrowdByGraphite|TestCrowdFromMemory' -v -count 1 -timeout 20m

verify-cost: ## all scenarios of values that make PostgreSQL scan a table, with the goals for each (eight minutes, needs redis-server and postgresql)
	HOTPARAM_COST=full go test ./checks/cost -v -count 1 -timeout 20m

mutants: ## plant known faults, one at a time, and show which check finds each (an hour, with 15 GB of build cache; ONLY=aggregator/ for some)
	go run ./checks/mutants/cmd/mutants -only "$(ONLY)"
	[ -n "$(ONLY)" ] || HOTPARAM_CHAOS_FAULTS=all go test ./checks/chaos -run TestPlantedFaults -v -count 1 -parallel 6
	[ -n "$(ONLY)" ] || HOTPARAM_CHAOS_FAULTS=all go test ./checks/e2e -run TestPlantedRestartFaults -v -count 1 -parallel 3

CHAOS = -duration 30m
chaos: ## faults let loose on real processes, judged from outside (30 minutes; CHAOS="-seed N -redis cluster -counts kafka -duration 5m")
	go run ./checks/chaos/cmd/chaos $(CHAOS)

SOAK = -duration 15m
soak: ## a steady load on real processes: memory, goroutines, descriptors and connections stay flat (15 minutes)
	go run ./checks/chaos/cmd/chaos -soak $(SOAK)

metrics: ## write the tables of METRICS.md from the code
	go generate -run TestMetricsPageIsUpToDate ./cmd/internal/daemon .

manifests: ## write deploy/kubernetes and the sidecar of deploy/gateways from the chart, and the chart's copy of the alerts
	go generate -tags real -run TestPlainManifestsAreTheChart ./deploy

pictures: ## make the pictures in docs/images from the real program (three minutes; needs tmux and redis-server)
	@./scripts/pictures.sh

clean: ## remove what was built
	rm -rf bin .cache
