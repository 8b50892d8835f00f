# make run    installs what is missing, builds crest and lets the bundled model answer a prompt
# make test   installs what is missing, builds everything and runs all tests
JOBS ?= $(shell nproc)
PROMPT ?= What is a volcano?
# The simulator is tested at one x86-64 level, which is a third of the work; without the variable its build has all three.
SIM_LEVELS ?= $(shell grep -qw avx2 /proc/cpuinfo && echo v3 || echo v2)
SIM_CXX = $(shell for n in 22 21 20; do command -v clang++-$$n && break; done)

.PHONY: run build test test-crest test-sim asan fuzz portable clean

build:
	tools/install_deps.sh run
	cmake --preset release -DCREST_BUILD_TESTS=OFF
	cmake --build --preset release -j $(JOBS) --target crest

run: build
	build/release/src/cli/crest run -m models/crest-tiny-moe-q4_k_m.gguf -p "$(PROMPT)"

test:
	tools/install_deps.sh test
	$(MAKE) test-crest test-sim

test-crest:
	cmake --preset release -DCREST_BUILD_TESTS=ON
	cmake --build --preset release -j $(JOBS)
	ctest --preset release -j $(JOBS)

test-sim:
	cmake -S sim -B build/sim -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=$(SIM_CXX) "-DCREST_SIM_ISA_LEVELS=$(SIM_LEVELS)"
	cmake --build build/sim -j $(JOBS)
	ctest --test-dir build/sim --output-on-failure -j $(JOBS)

asan:
	cmake --preset asan
	cmake --build --preset asan -j $(JOBS)
	ctest --preset asan -j $(JOBS)

fuzz:
	cmake --preset fuzz
	cmake --build --preset fuzz -j $(JOBS)
	tools/run_fuzzers.sh build/fuzz $(or $(SECONDS_EACH),60)

portable:
	tools/install_deps.sh run
	cmake --preset portable
	cmake --build --preset portable -j $(JOBS)

clean:
	rm -rf build
