"""[H] Option tables and subcommands of the programs that agents run: data only, read by options.py.

A table is (traits, options that take a value, flags, options that change only how output looks); its strings are split when
first needed. Traits:

    o options may stand anywhere   c one-letter options may be glued (-xvf)   d `./x` and `x` differ
    p operands are paths, so the working directory does not matter   x the first operand is a script or pattern
    s the first operand ends the options (what follows belongs to something else)   e `--` only ends the options
    v `./x` and `x` differ as an option's value   l a trailing slash matters   g `-n=x` is `-n x`
    u the order of the operands does not matter: all of them are tested, checked, installed, made or removed

`-t=--tag` means two spellings of one option. Only programs known to ignore the order of their options have `o`.
"""

from __future__ import annotations

from projectmem_gate.lines import names

_PIP = (
    "ocu",
    """-r=--requirement -c=--constraint -e=--editable -i=--index-url --extra-index-url -f=--find-links -t=--target --prefix
    --root --python --platform --timeout --retries --proxy --trusted-host --cache-dir --progress-bar --log
    --only-binary --no-binary --extra --group --index --default-index -p=--python --config-settings""",
    """-U=--upgrade -q=--quiet -v=--verbose --user --no-cache-dir --no-deps --pre --force-reinstall --break-system-packages
    -y=--yes --no-build-isolation -I=--ignore-installed --no-input --disable-pip-version-check --dry-run
    --require-hashes --system --dev --frozen --locked --all-extras --all-groups --no-cache --offline --no-sync
    --no-dev --no-progress""",
    "-q --quiet -v --verbose --progress-bar --disable-pip-version-check --no-progress --no-input",
)
_NODE_PM = (
    "ocdu",
    """--prefix -w=--workspace --registry --loglevel --omit --include --tag --cache --userconfig --filter -F=--filter
    --reporter""",
    """-D=--save-dev -S=--save -E=--save-exact -g=--global -f=--force --legacy-peer-deps --no-audit --no-fund --silent
    -s=--silent --production --ignore-scripts --package-lock-only --prefer-offline --offline --dry-run --workspaces
    --if-present --no-save --frozen-lockfile --no-frozen-lockfile --dev -d=--dev --exact --global --quiet -y=--yes
    --no-progress --immutable -r=--recursive --no-save --verbose --shamefully-hoist --strict-peer-dependencies""",
    "--silent -s --loglevel --no-audit --no-fund --no-progress --quiet --reporter --verbose --color --no-color",
)
_NODE_SCRIPT = ("ocd", *_NODE_PM[1:])  # the words behind it are the script's own
_CARGO = (
    "oc",
    """-p=--package --bin --example --test --bench --features -F=--features --target --target-dir --manifest-path -j=--jobs
    --profile --color --message-format -Z --exclude --config --git --branch --rev --path --vers --version --root""",
    """--release -r=--release --all --workspace --all-targets --all-features --no-default-features --lib --bins --tests
    --locked --offline --frozen -v=--verbose -q=--quiet --keep-going --no-run --doc --examples --no-fail-fast --fix
    --allow-dirty --check --no-deps --benches --future-incompat-report --allow-staged""",
    "-v --verbose -q --quiet --color --message-format",
)
_DOCKER_BUILD = (
    "oc",
    """-t=--tag -f=--file --build-arg --target --platform --progress --cache-from --cache-to --label --network --secret --ssh
    -o=--output --iidfile --shm-size --memory -m=--memory --add-host --ulimit --isolation --build-context --builder""",
    "--no-cache --pull -q=--quiet --rm --force-rm --squash --load --push --compress",
    "--progress -q --quiet",
)
_COMPOSE = (
    "oc",
    """-f=--file -p=--project-name --profile --env-file --project-directory --scale -t=--timeout --timeout --wait-timeout
    --pull --exit-code-from --ansi --progress --build-arg""",
    """-d=--detach --build --no-build --force-recreate --no-deps --remove-orphans --wait -V --quiet-pull --no-recreate
    -v=--volumes --abort-on-container-exit --always-recreate-deps --no-start --no-color --rm -T --no-cache""",
    "--ansi --progress --no-color --quiet-pull",
)
_PYTEST = (
    "ocu",
    """-k -m -p -c -o=--override-ini -n=--numprocesses -W -r --tb --maxfail --rootdir --cov --cov-report --cov-config
    --junitxml --ignore --ignore-glob --deselect --durations --basetemp --confcutdir --dist --timeout --log-level
    --log-cli-level --color --capture --import-mode --ds --reruns --junit-xml --durations-min --verbosity
    --show-capture --code-highlight --asyncio-mode --cov-fail-under --randomly-seed --hypothesis-seed
    --hypothesis-profile --count""",
    """-x=--exitfirst -v -q -s -l --lf=--last-failed --ff=--failed-first --nf --sw=--stepwise --verbose --quiet --no-header
    -h --no-summary --no-cov --pdb --co=--collect-only --strict-markers --strict-config --showlocals
    --disable-warnings --cov --cache-clear --forked --runslow --full-trace""",
    """-v -q --verbose --quiet --tb -r --no-header --no-summary --color --durations --durations-min -l --showlocals
    --verbosity --disable-warnings --code-highlight --show-capture --full-trace""",
)
_JEST = (
    "ocu",
    """-t=--testNamePattern --testPathPattern --testPathPatterns -c=--config -w=--maxWorkers --reporters --coverageReporters
    --testTimeout --rootDir --projects --selectProjects --env --coverageDirectory --shard""",
    """-i=--runInBand --watch --watchAll --coverage --verbose --silent --no-cache --ci --colors --bail -b=--bail
    --passWithNoTests --forceExit --detectOpenHandles -u=--updateSnapshot --json --no-coverage --onlyChanged
    -o=--onlyChanged --no-watchman""",
    "--verbose --silent --colors --no-colors --color --no-color --reporters",
)
_VITEST = (
    "ocu",
    """-t=--testNamePattern --reporter -c=--config --project -r=--root --dir --environment --pool --maxWorkers --minWorkers
    --shard""",
    "--run --coverage --watch --no-color --color -u=--update --passWithNoTests --no-coverage --bail --no-file-parallelism",
    "--reporter --no-color --color",
)
_GIT_LOOK = (
    "oc",
    """-n=--max-count --format --pretty -L -S -G -U=--unified --since --until --after --before --author --grep --skip
    --diff-filter --date --abbrev --sort --points-at --contains --merged --no-merged""",
    """--oneline --stat --name-only --name-status --cached --staged --patch -p=--patch --graph --all --decorate --no-color
    --color --short -s=--short -b=--branch --branch --porcelain --no-patch --shortstat --numstat --follow --reverse
    --first-parent --no-merges --merges --check -a=--all -r=--remotes --list -v --show-current --quiet -q -w
    --exit-code --full-diff --no-ext-diff --no-renames --find-renames -M --summary --ignored --no-decorate --word-diff""",
    "--no-color --color --decorate --no-decorate",
)

TABLES: dict[str, tuple[str, str, str, str]] = {
    "pytest": _PYTEST,
    "go test": (
        "odu",
        """-run -bench -count -timeout -tags -coverprofile -covermode -coverpkg -cpu -parallel -skip -p -mod -ldflags -gcflags -o
        -exec -vet -benchtime -shuffle -fuzz -fuzztime -C -list -asmflags -overlay -memprofile -cpuprofile""",
        "-v -race -cover -short -failfast -json -x -n -a -i -c -benchmem -work -trimpath -msan -asan",
        "-v -json",
    ),
    "go vet": ("odu", "-tags -vettool -mod -c", "-v -json -n -x", "-v -json"),
    "golangci-lint run": (
        "ocd",
        """-c=--config --timeout --out-format --enable -E=--enable -D=--disable --build-tags --new-from-rev -j=--concurrency
        -p=--presets --color""",
        "--fix --fast --new -v=--verbose --show-stats --allow-parallel-runners --no-config -n=--new --tests",
        "-v --verbose --out-format --color --show-stats",
    ),
    **dict.fromkeys(("npm install", "npm ci", "npm uninstall", "npm update", "npm audit"), _NODE_PM),
    **dict.fromkeys(("npm test", "npm run"), _NODE_SCRIPT),
    **dict.fromkeys(("pnpm install", "pnpm add", "pnpm remove", "yarn install", "bun install"), _NODE_PM),
    **dict.fromkeys(
        ("yarn add", "bun add"), (*_NODE_PM[:2], _NODE_PM[2].replace("-D=--save-dev", "-D=--dev --save-dev=--dev"), _NODE_PM[3])
    ),
    **dict.fromkeys(
        ("cargo build", "cargo test", "cargo check", "cargo clippy", "cargo fmt", "cargo doc", "cargo bench"), _CARGO
    ),
    **dict.fromkeys(("cargo install", "cargo add", "cargo update", "cargo fetch"), _CARGO),
    **dict.fromkeys(("docker build", "podman build", "docker buildx build"), _DOCKER_BUILD),
    "docker compose": _COMPOSE,
    "docker run": (
        "ocs",
        """-v=--volume -e=--env -p=--publish --name --network -w=--workdir --entrypoint -u=--user --platform --mount --env-file
        -m=--memory --cpus -l=--label --add-host --restart -h=--hostname --ulimit --shm-size --gpus --cap-add
        --security-opt --device --tmpfs --pull""",
        "-d=--detach -i=--interactive -t=--tty --rm --privileged --init --read-only -P",
        "-i -t --interactive --tty",
    ),
    "git commit": (
        "oc",
        """-m=--message -F=--file -C -c --author --date --fixup --squash --cleanup -t --template --trailer
        --pathspec-from-file""",
        """-a=--all -v=--verbose --amend --no-edit -n=--no-verify -s=--signoff -q=--quiet --allow-empty -S=--gpg-sign
        --no-gpg-sign --allow-empty-message -o -i --dry-run -e=--edit -p=--patch --no-status --reset-author""",
        "-q --quiet -v --verbose",
    ),
    "git push": (
        "oc",
        "-o=--push-option --repo --receive-pack",
        """-u=--set-upstream -f=--force --force-with-lease --tags --all -d=--delete --no-verify -n=--dry-run -q=--quiet
        -v=--verbose --progress --follow-tags --prune --mirror --atomic --porcelain""",
        "-q --quiet -v --verbose --progress --no-progress --porcelain",
    ),
    **dict.fromkeys(
        ("git pull", "git fetch"),
        (
            "oc",
            "-s=--strategy -X=--strategy-option --depth -j=--jobs --upload-pack --shallow-since --refmap",
            """--rebase -r=--rebase --ff-only --no-rebase --no-ff --ff -p=--prune --all -t=--tags --tags --no-tags -q=--quiet
            -v=--verbose --progress --unshallow -f=--force --autostash --dry-run --no-edit --squash --no-commit
            --recurse-submodules --prune-tags""",
            "-q --quiet -v --verbose --progress --no-progress",
        ),
    ),
    **dict.fromkeys(
        ("git add", "git rm"),
        (
            "oceu",
            "--chmod --pathspec-from-file",
            "-A=--all -u=--update -p=--patch -f=--force -v -n --dry-run -N --cached -r -q",
            "-v -q",
        ),
    ),
    **dict.fromkeys(
        ("git checkout", "git switch"),
        (
            "oc",
            "-b -B -c -C --orphan --conflict",
            "-q -f=--force --force -t=--track --track --no-track --ours --theirs -p --detach",
            "-q --quiet",
        ),
    ),
    **dict.fromkeys(
        ("git merge", "git rebase", "git cherry-pick", "git revert"),
        (
            "oc",
            "-m -X=--strategy-option -s=--strategy --onto -x=--exec",
            """--no-ff --ff-only --squash --no-commit --abort --continue --skip --no-edit -q=--quiet -i=--interactive --autostash
            --autosquash --no-verify -n""",
            "-q --quiet",
        ),
    ),
    **dict.fromkeys(("git log", "git diff", "git show", "git status", "git branch", "git tag"), _GIT_LOOK),
    "git clone": (
        "oc",
        "-b=--branch --depth -o=--origin --filter -c=--config --reference -j=--jobs",
        """-q=--quiet --progress --bare --mirror --recurse-submodules --recursive --single-branch --no-checkout -n
        --shallow-submodules --sparse""",
        "-q --quiet --progress --no-progress",
    ),
    **dict.fromkeys(
        ("pip install", "pip uninstall", "pip download", "uv pip install", "uv add", "uv sync", "uv lock", "pipx install"), _PIP
    ),
    "ruff check": (
        "ocu",
        """--select --ignore --extend-select --config --output-format --line-length --target-version --exclude --fixable
        --unfixable --per-file-ignores --cache-dir""",
        """--fix --unsafe-fixes --no-cache -n=--no-cache -q=--quiet -s=--silent --preview --diff --show-fixes --statistics
        --exit-zero --no-fix -v""",
        "--output-format -q --quiet -v --verbose --statistics --show-fixes --no-cache",
    ),
    "ruff format": (
        "ocu",
        "--config --line-length --exclude",
        "--check --diff -q=--quiet --preview --no-cache",
        "-q --quiet --no-cache",
    ),
    "mypy": (
        "ocu",
        """--config-file -p=--package -m=--module --python-version --exclude --cache-dir --python-executable -c --follow-imports
        --platform""",
        """--strict --ignore-missing-imports --pretty --no-color-output --no-error-summary --show-error-codes
        --explicit-package-bases --no-incremental --namespace-packages --show-column-numbers --show-error-context
        --hide-error-codes --color-output --check-untyped-defs --install-types --non-interactive --no-site-packages""",
        """--pretty --no-color-output --color-output --show-error-codes --no-error-summary --show-column-numbers
        --show-error-context --hide-error-codes""",
    ),
    "eslint": (
        "ocu",
        """--ext -c=--config -f=--format --max-warnings --rule --ignore-pattern --cache-location --parser -o=--output-file
        --ignore-path --resolve-plugins-relative-to""",
        "--fix --cache --quiet --no-error-on-unmatched-pattern --no-eslintrc --color --no-color --debug",
        "-f --format --color --no-color --cache --cache-location",
    ),
    "tsc": (
        "o",
        """-p=--project --outDir --target --module --rootDir --jsx --lib --moduleResolution --types
        --baseUrl --tsBuildInfoFile""",
        """--noEmit --skipLibCheck --pretty --strict --watch -w=--watch -b=--build --incremental --declaration
        --emitDeclarationOnly --esModuleInterop --force --noEmitOnError --allowJs --checkJs --resolveJsonModule""",
        "--pretty",
    ),
    "jest": _JEST,
    "vitest": _VITEST,
    "vitest run": _VITEST,
    "kubectl": (
        "ocg",
        """-n=--namespace -f=--filename -o=--output -l=--selector -c=--container --context --kubeconfig --field-selector --tail
        --since --replicas --timeout -k=--kustomize -p=--patch --image --type""",
        "-A=--all-namespaces --all -w=--watch --force --dry-run --wait --now -R --previous --no-headers --show-labels",
        "-o --output --no-headers --show-labels",
    ),
    "kubectl logs": (
        "ocg",
        """-n=--namespace -c=--container -l=--selector --context --kubeconfig --tail --since --since-time --limit-bytes
        --max-log-requests --pod-running-timeout""",
        "-f=--follow -p=--previous --timestamps --all-containers --all-pods --prefix --ignore-errors",
        "--timestamps --prefix",
    ),
    **dict.fromkeys(
        ("docker ps", "docker images", "podman ps", "podman images"),
        (
            "ocg",
            "-f=--filter --format -n=--last",
            "-a=--all -q=--quiet -l=--latest -s=--size --no-trunc --digests",
            "--format --no-trunc",
        ),
    ),
    **dict.fromkeys(
        ("bazel build", "bazel test", "bazel run", "bazelisk build", "bazelisk test", "bazelisk run"),
        (
            "od",
            """--config -c=--compilation_mode -j=--jobs --test_filter --test_output --test_arg --define --copt --cxxopt
            --platforms --cpu --test_tag_filters --build_tag_filters
            --local_test_jobs --runs_per_test --test_timeout --remote_cache""",
            "-k=--keep_going -s=--subcommands --nocache_test_results --stamp --verbose_failures --noshow_progress",
            "--test_output --verbose_failures --noshow_progress -s",
        ),
    ),
    **dict.fromkeys(
        (
            "terraform plan",
            "terraform apply",
            "terraform init",
            "terraform validate",
            "terraform destroy",
            "tofu plan",
            "tofu apply",
        ),
        (
            "o",
            "-var -var-file -target -out -state -backend-config -parallelism -lock-timeout -replace -chdir",
            """-auto-approve -no-color -refresh-only -destroy -upgrade -reconfigure -migrate-state -compact-warnings -json
            -force-copy -detailed-exitcode""",
            "-no-color -compact-warnings",
        ),
    ),
    "make": (
        "oc",
        "-f=--file -o -W -I -l",
        "-s=--silent -k=--keep-going -B=--always-make -n=--dry-run -i -j=--jobs -w -e -r -d --no-print-directory",
        "-s --silent --no-print-directory -w",
    ),
    "curl": (
        "oc",
        """-X=--request -H=--header -d=--data --data-raw --data-binary --data-urlencode --json -o=--output -u=--user
        -A=--user-agent -b=--cookie -c=--cookie-jar -F=--form -e=--referer -T=--upload-file -m=--max-time
        --connect-timeout --retry --retry-delay -w=--write-out --url -x=--proxy --cacert --cert --key --resolve
        --max-redirs""",
        """-s=--silent -S=--show-error -f=--fail -L=--location -k=--insecure -i=--include -v=--verbose -I=--head -O -J -g
        -N=--no-buffer -G --compressed""",
        "-s --silent -S --show-error -v --verbose -i --include -w --write-out -N --no-buffer -o --output",
    ),
    "gh": (
        "oc",
        """-R=--repo --json -q=--jq -t=--title -b=--body -F=--field -f=--raw-field -X=--method -H=--header -B=--base --head
        -L=--limit -s=--state -l=--label --template -T -a=--assignee --body-file -c=--comment -r=--reviewer
        -m=--milestone --search -S=--search --add-label --remove-label --job -w=--workflow --branch --author --input""",
        """--web -w --draft -d=--draft --fill -f=--fill --squash --merge --rebase --delete-branch --auto --admin --patch --log
        --log-failed --watch --paginate --comments --silent --exit-status --name-only --approve --request-changes
        --closed --include -i=--include""",
        "",
    ),
    "ls": (
        "ocp",
        "-I --ignore --color --sort --time",
        "--all --almost-all --human-readable --recursive --group-directories-first -1",
        "--color -1",
    ),
    **dict.fromkeys(
        ("cp", "mv", "ln"),
        ("ocpe", "-m=--mode -t", "-r=--recursive -R=--recursive -f=--force -p=--parents -v=--verbose", "-v --verbose"),
    ),
    **dict.fromkeys(
        ("rm", "mkdir", "rmdir", "touch"),
        ("ocpeu", "-m=--mode -t", "-r=--recursive -R=--recursive -f=--force -p=--parents -v=--verbose", "-v --verbose"),
    ),
    **dict.fromkeys(
        (
            "cat",
            "nl",
            "tac",
            "file",
            "stat",
            "du",
            "gofmt",
            "goimports",
            "gofumpt",
            "chmod",
            "chown",
            "chgrp",
            "wc",
            "less",
            "bat",
        ),
        ("p", "", "", ""),
    ),
    **dict.fromkeys(("head", "tail"), ("ocp", "-n=--lines -c=--bytes", "-f -q -v -F", "")),
    "sed": ("xp", "", "", ""),
    **dict.fromkeys(("awk", "gawk", "perl", "ag"), ("x", "", "", "")),
    **dict.fromkeys(
        ("grep", "egrep", "fgrep"),
        (
            "ocxp",
            "-e=--regexp -f=--file -m=--max-count -A -B -C --include --exclude --exclude-dir --color",
            "--color --colour",
            "--color --colour",
        ),
    ),
    "rg": (
        "ocx",
        "-e=--regexp -f=--file -m=--max-count -A -B -C -g=--glob -t=--type -T -j --color --max-depth -d --sort --iglob -M",
        """--files --hidden --no-ignore --no-heading --heading --json -P=--pcre2 -U=--multiline -c=--count -n=--line-number
        -N=--no-line-number -i=--ignore-case -s=--case-sensitive -S=--smart-case -w=--word-regexp -x=--line-regexp
        -v=--invert-match -F=--fixed-strings -l=--files-with-matches --files-without-match -L=--follow -o=--only-matching
        -u=--unrestricted -a=--text -z=--search-zip -H=--with-filename -I=--no-filename""",
        "--color --no-heading --heading",
    ),
    **dict.fromkeys(
        ("go", "bun", "npm", "pnpm", "yarn", "npx", "bunx", "uv", "pip", "cargo", "golangci-lint"),
        ("d", "", "", ""),
    ),
}


# Programs whose first word is a subcommand, and pairs whose next word is one too.
SUBCOMMANDS = names(
    """
    git npm pnpm yarn bun deno go cargo docker podman kubectl helm terraform tofu pip pipx uv poetry pdm hatch gh glab
    mise rustup brew apt apt-get dnf yum apk systemctl dotnet turbo nx composer bundle rails
    mix flutter dart swift conda mamba jj hg svn bd workmux entire ruff supabase vercel wrangler prisma alembic
    pre-commit golangci-lint aws gcloud az fly heroku rtk vitest playwright gem service launchctl nvm fnm volta
    ng lerna firebase netlify eas expo bazel bazelisk
    """
)
TWO_LEVEL = frozenset(
    pair.strip()
    for pair in """
    docker compose|docker buildx|uv pip|uv tool|go mod|go work|npm run|pnpm run|yarn run|bun run|deno task|mise run|git stash
    |git worktree|git remote|git submodule|git bisect|poetry env|gh pr|gh issue|gh run|gh repo|gh auth|gh workflow|gh release
    |turbo run|nx run|bd dep|kubectl rollout|composer run|dotnet tool|aws s3|aws sso|gcloud auth|gcloud compute|az account
    |hatch env|brew services
    """.split("|")
)
# Options in front of the subcommand that take a value; those that set the directory are folded into it.
GLOBAL_VALUES = {
    "git": "-C -c --git-dir --work-tree --exec-path --namespace",
    "docker": """-H --host -c --context --config -l -f --file -p --project-name --profile --env-file --project-directory
    --ansi --progress""",
    "kubectl": "-n --namespace --context --kubeconfig",
    "npm": "--prefix -C --loglevel -w --workspace",
    "pnpm": "-C --dir --filter -F",
    "yarn": "--cwd",
    "bun": "--cwd --filter",
    "make": "-C -f",
    "go": "-C",
    "uv": "--directory --project",
    "poetry": "-C --directory",
    "cargo": "--color --config -Z",
    "gh": "-R --repo",
    "mise": "-C --cd",
    "bd": "--db --actor",
    "terraform": "",
    "tofu": "",
    "ctest": "--test-dir",
    "ninja": "-C",
    "composer": "-d --working-dir",
    "aws": "--region --profile --output --endpoint-url --query --color",
    "gcloud": "--project --account --format --verbosity --zone --region --configuration",
    "az": "--output -o --subscription --query",
    "helm": "-n --namespace --kube-context --kubeconfig",
    "pip": "--proxy --timeout --python --cache-dir",
    "apt-get": "-o -t -c",
    "brew": "",
    "dotnet": "",
}
# Short options in front of the subcommand, in their long spelling.
GLOBAL_LONG = {
    "pnpm -F": "--filter",
    "npm -w": "--workspace",
    "kubectl -n": "--namespace",
    "helm -n": "--namespace",
    "gh -R": "--repo",
    "docker -H": "--host",
    "docker -c": "--context",
    "docker -f": "--file",
    "docker -p": "--project-name",
    "az -o": "--output",
}
DIRECTORY = frozenset(
    """git -C|npm --prefix|npm -C|pnpm -C|pnpm --dir|yarn --cwd|bun --cwd|make -C|make --directory|go -C|uv --directory|poetry -C
    |poetry --directory|mise -C|mise --cd|terraform -chdir|tofu -chdir|ctest --test-dir|ninja -C|composer -d
    |composer --working-dir""".replace("\n    ", "").split("|")
)
GLOBAL_DROP = frozenset(
    """git --no-pager|git -P|git --paginate|npm --silent|npm -s|bd --quiet|bun --silent|yarn --silent|pnpm --silent
    |cargo -q|cargo --quiet|cargo -v|cargo --verbose|uv -q|uv --quiet|uv -v|docker -D|npm --loglevel|pip -q|pip --quiet|pip -v
    |pip --disable-pip-version-check|pip --no-color|poetry -q|poetry --no-ansi|poetry -v|helm --debug|cargo --color
    |pip --no-input""".replace("\n    ", "").split("|")
)

ALIASES = {
    "npm": {
        "i": "install",
        "add": "install",
        "isntall": "install",
        "t": "test",
        "tst": "test",
        "run-script": "run",
        "rum": "run",
        "un": "uninstall",
        "rm": "uninstall",
    },
    "pnpm": {"i": "install", "t": "test"},
    "yarn": {"i": "install"},
    "bun": {"i": "install"},
    "cargo": {"b": "build", "t": "test", "c": "check", "r": "run"},
}
# Names that another spelling of the same command need not contain: never hint words.
UNSURE_WORDS = names(
    """
    install test run build check uninstall ci rmi images ps list services deployments
    """
)
# What yarn and pnpm do themselves; any other word is a script of the package.
PM_BUILTIN = names(
    """
    install add remove up update upgrade outdated list ls why audit init create dlx exec run test start publish pack
    link unlink store config set login logout whoami version versions info view cache dedupe import prune rebuild root
    bin patch deploy fetch node workspace workspaces plugin plugins rb dedup doctor env setup help licenses recursive
    x pm repl global policies self-update server approve-builds i t
    """
)
