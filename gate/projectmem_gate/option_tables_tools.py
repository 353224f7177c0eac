"""[H] Option tables of monorepo tools, further package managers, clients of servers, and PowerShell: data only.

As in option_tables.py, and one more trait: `P` a command of PowerShell, whose parameters are spelled in any case and may
be given
by place or by name (POSITIONS).
"""

from __future__ import annotations

_NX = (
    "ov",
    """-c=--configuration -t=--target --targets -p=--projects --parallel --base --head --files
    --exclude --output-style --runner --graph --maxParallel""",
    "--skip-nx-cache --skipNxCache --verbose --nxBail --nx-bail --all --no-color --color --nxIgnoreCycles",
    "--verbose --output-style --no-color --color",
)
_PDM = (
    "ocd",
    "-G=--group --with --without -p=--project -L=--lockfile -k=--skip --venv --config-setting",
    """-d=--dev --prod -v=--verbose -q=--quiet --no-lock --no-self --no-editable --frozen-lockfile
    --dry-run
    --no-isolation --no-sync --check --clean --no-default""",
    "--verbose --quiet",
)
_SWIFT = (
    "o",
    """-c=--configuration --scratch-path --build-path --product --target --filter --skip -j=--jobs
    -Xswiftc -Xcc
    -Xlinker --triple --arch --sanitize --swift-sdk --num-workers --xunit-output --traits""",
    """-v=--verbose -q=--quiet --parallel --enable-code-coverage --build-tests --show-bin-path --skip-build
    --static-swift-stdlib --skip-update --disable-sandbox""",
    "--verbose --quiet",
)
_STACK = (
    "oc",
    "--flag --ghc-options -j=--jobs --stack-yaml --resolver --test-arguments --ta --bench-arguments --exec",
    """--fast --test --bench --haddock --pedantic --no-run-tests --no-run-benchmarks --dry-run --keep-going --force-dirty
    --only-dependencies --only-snapshot --coverage --copy-bins -v=--verbose --silent --no-haddock-deps --profile --trace""",
    "--verbose --silent",
)
_CABAL = (
    "oc",
    "-w=--with-compiler -j=--jobs --project-file --ghc-options -f=--flags --builddir --constraint --test-options --index-state",
    """--enable-tests --disable-tests --enable-benchmarks --disable-benchmarks --dry-run --only-dependencies --offline
    -v=--verbose
    --enable-profiling --disable-optimization --keep-going -O""",
    "--verbose",
)
_PULUMI = (
    "oc",
    """-s=--stack -c=--config -m=--message -t=--target -p=--parallel --replace --target-replace --policy-pack --color
    --config-file
    --secrets-provider --exclude""",
    """-y=--yes -f=--skip-preview -r=--refresh -d=--diff --expect-no-changes --non-interactive -e=--emoji --show-config
    --suppress-outputs --suppress-progress --target-dependents --json -j=--json --logtostderr""",
    "--color --emoji --suppress-outputs --suppress-progress --json --diff",
)
_MYSQL = (
    "oc",
    """-u=--user -h=--host -P=--port -D=--database -e=--execute -S=--socket --defaults-file --default-character-set --ssl-mode
    --protocol --connect-timeout --init-command""",
    """-N=--skip-column-names -B=--batch -t=--table -s=--silent -v=--verbose -f=--force -A=--no-auto-rehash -r=--raw
    -p=--password
    -E=--vertical -X=--xml -C=--compress""",
    "--skip-column-names --batch --table --silent --verbose --raw --vertical --xml",
)

TABLES: dict[str, tuple[str, str, str, str]] = {
    **dict.fromkeys(("nx run", "nx run-many", "nx affected", "nx build", "nx test", "nx lint", "nx serve", "nx e2e"), _NX),
    "turbo run": (
        "ov",
        """--filter -F=--filter --concurrency --cache-dir --env-mode --log-order --output-logs --graph --ui --log-prefix
        --cache
        --team --token --api --cwd""",
        "--force --continue --no-cache --parallel --dry --dry-run --only --no-daemon --daemon --summarize --affected --verbosity",
        "--log-order --output-logs --ui --log-prefix --verbosity",
    ),
    **dict.fromkeys(("pdm install", "pdm add", "pdm remove", "pdm update", "pdm sync", "pdm lock", "pdm build"), _PDM),
    **dict.fromkeys(
        ("pixi run", "pixi install"),
        (
            "ocs",
            "-e=--environment --manifest-path --color -x=--executable",
            "--frozen --locked -v=--verbose -q=--quiet --no-progress --clean-env --skip-deps -a=--all --as-is",
            "--color --verbose --quiet --no-progress",
        ),
    ),
    **dict.fromkeys(("swift build", "swift test", "swift run", "swift package"), _SWIFT),
    **dict.fromkeys(("stack build", "stack test", "stack bench", "stack haddock"), _STACK),
    **dict.fromkeys(("cabal build", "cabal test", "cabal bench", "cabal install"), _CABAL),
    **dict.fromkeys(("pulumi up", "pulumi preview", "pulumi destroy", "pulumi refresh"), _PULUMI),
    **dict.fromkeys(
        ("flutter build", "flutter test", "flutter run", "dart test", "dart run"),
        (
            "oc",
            """-t=--target --flavor --build-name --build-number --dart-define --dart-define-from-file -d=--device-id --name
            --plain-name             -j=--concurrency --reporter -r=--reporter --tags --exclude-tags --split-debug-info
            --target-platform""",
            """--release --debug --profile --no-pub --pub --coverage --verbose -v=--verbose --no-sound-null-safety --obfuscate
            --split-per-abi --no-codesign --update-goldens --tree-shake-icons --no-tree-shake-icons""",
            "--verbose --reporter",
        ),
    ),
    **dict.fromkeys(
        ("cargo nextest run", "cargo nextest list"),
        (
            "oc",
            """-p=--package --bin --example --test --bench -F=--features --target --target-dir --manifest-path -j=--jobs
            --profile
            --cargo-profile -E=--filter-expr --partition --retries --color --message-format --test-threads --failure-output
            --success-output --status-level --final-status-level --exclude""",
            """--release -r=--release --workspace --all --all-targets --all-features --no-default-features --lib --bins
            --tests
            --locked --offline --frozen -v=--verbose --no-fail-fast --fail-fast --no-run --no-capture --hide-progress-bar""",
            "--color --verbose --status-level --final-status-level --failure-output --success-output --hide-progress-bar",
        ),
    ),
    "ansible-playbook": (
        "oc",
        """-i=--inventory -l=--limit -e=--extra-vars -t=--tags --skip-tags -u=--user -f=--forks --vault-password-file
        --vault-id
        --private-key -c=--connection --start-at-task -T=--timeout -M=--module-path""",
        """-b=--become -C=--check -D=--diff -K=--ask-become-pass -k=--ask-pass --syntax-check --list-tasks --list-hosts
        --flush-cache
        --step""",
        "",
    ),
    **dict.fromkeys(
        ("prisma migrate", "prisma db", "prisma generate"),
        (
            "o",
            "-n=--name --name --schema --from-schema-datamodel --to-schema-datamodel --generator --config",
            "--skip-seed --skip-generate --create-only --accept-data-loss --force-reset --force -f=--force --preview-feature",
            "",
        ),
    ),
    **dict.fromkeys(
        ("wrangler deploy", "wrangler dev"),
        (
            "oc",
            "-e=--env --env -c=--config --config --name --compatibility-date --port --ip --var --define --outdir --tsconfig",
            "--dry-run --minify --keep-vars --local --remote -l=--local --no-bundle --node-compat --upload-source-maps",
            "",
        ),
    ),
    "glab mr create": (
        "oc",
        """-t=--title -d=--description -l=--label -a=--assignee -b=--target-branch -s=--source-branch -m=--milestone
        --reviewer
        -R=--repo -H=--head -i=--related-issue""",
        "--draft --wip -y=--yes -f=--fill --remove-source-branch --squash-before-merge --push -w=--web --allow-collaboration",
        "",
    ),
    **dict.fromkeys(("mysql", "mariadb"), _MYSQL),
    **dict.fromkeys(
        ("docker compose exec", "docker compose run"),
        (
            "ocs",
            "-e=--env -u=--user -w=--workdir --index -v=--volume -p=--publish -l=--label --name --entrypoint --cap-add",
            """-T -t=--tty -i=--interactive -d=--detach --privileged --rm --no-deps --build -P=--service-ports --service-ports
            --use-aliases --remove-orphans --quiet-pull --no-TTY""",
            "-T --no-TTY -t --tty -i --interactive --quiet-pull",
        ),
    ),
    **dict.fromkeys(
        ("git worktree add", "git worktree remove"),
        (
            "oc",
            "-b -B --reason",
            "-f=--force -d=--detach --checkout --no-checkout --lock -q=--quiet --guess-remote --track --no-track --orphan",
            "-q --quiet",
        ),
    ),
    "git reset": ("oc", "--pathspec-from-file", "--hard --soft --mixed --keep --merge -q=--quiet -p=--patch -N", "-q --quiet"),
    "git stash": (
        "oc",
        "-m=--message --pathspec-from-file",
        "-u=--include-untracked -a=--all -k=--keep-index --no-keep-index -q=--quiet -p=--patch -S=--staged --index",
        "-q --quiet",
    ),
    "git submodule update": (
        "oc",
        "--depth -j=--jobs --reference",
        "--init --recursive --remote -f=--force --merge --rebase --checkout -q=--quiet --progress --single-branch",
        "-q --quiet --progress",
    ),
    "docker logs": ("ocg", "-n=--tail --since --until", "-f=--follow -t=--timestamps --details", "--timestamps"),
    "black": (
        "ocu",
        """-l=--line-length -t=--target-version --config --include --exclude --extend-exclude --force-exclude
        -W=--workers -c=--code
        --stdin-filename --required-version""",
        """--check --diff --color --no-color --fast --safe -q=--quiet -v=--verbose -S=--skip-string-normalization --preview --pyi
        -C=--skip-magic-trailing-comma --ipynb""",
        "--color --no-color --quiet --verbose",
    ),
    "isort": (
        "ocu",
        "-l=--line-length --profile -p=--project -s=--skip --skip-glob --settings-path --src -j=--jobs",
        "-c=--check-only --check=--check-only --diff -q=--quiet -v=--verbose --atomic --float-to-top --color",
        "--quiet --verbose --color",
    ),
    "flake8": (
        "ocu",
        """--config --max-line-length --select --ignore --extend-ignore --extend-select --exclude --extend-exclude --filename
        --per-file-ignores --max-complexity --format -j=--jobs --output-file""",
        "--count --show-source --statistics -q=--quiet -v=--verbose --isolated --exit-zero --benchmark",
        "--count --show-source --statistics --quiet --verbose --format --benchmark",
    ),
    "prettier": (
        "ocu",
        """--config --ignore-path --parser --plugin --log-level --tab-width --print-width --trailing-comma
        --end-of-line --prose-wrap
        --config-precedence --cache-location""",
        """-c=--check -w=--write -l=--list-different -u=--ignore-unknown --no-error-on-unmatched-pattern --cache
        --no-cache --color
        --no-color --single-quote --no-semi --no-config --no-editorconfig --with-node-modules""",
        "--log-level --color --no-color --cache",
    ),
    "shellcheck": (
        "ocu",
        "-s=--shell -e=--exclude -i=--include -f=--format -S=--severity -o=--enable -P=--source-path -C=--color --rcfile",
        "-x=--external-sources -a=--check-sourced --norc",
        "--format --color",
    ),
    "tox": (
        "oc",
        "-e -c=--conf --workdir --root --result-json -x=--override --installpkg --discover -f",
        "-r=--recreate -v=--verbose -q=--quiet --notest -l=--listenvs -a=--listenvs-all --develop --skip-pkg-install",
        "--verbose --quiet",
    ),
    "nox": (
        "oc",
        "-s=--session --sessions=--session -k=--keywords -t=--tags -p=--python --pythons=--python -f=--noxfile --envdir",
        """-r=--reuse-existing-virtualenvs -R -N -l=--list -x=--stop-on-first-error --no-venv -v=--verbose --non-interactive
        --no-install --error-on-missing-interpreters --forcecolor --nocolor""",
        "--verbose --forcecolor --nocolor",
    ),
    "pre-commit run": (
        "oc",
        "--hook-stage -c=--config --color --from-ref -s=--from-ref --to-ref -o=--to-ref",
        "-a=--all-files --show-diff-on-failure -v=--verbose",
        "--show-diff-on-failure -v --verbose --color",
    ),
    "uvicorn": (
        "o",
        """--host --port --workers --log-level --app-dir --env-file --loop --http --root-path --reload-dir --uds --log-config
        --ssl-keyfile --ssl-certfile""",
        "--reload --factory --proxy-headers --no-access-log --access-log --use-colors --no-use-colors",
        "--log-level --no-access-log --access-log --use-colors --no-use-colors",
    ),
    "gunicorn": (
        "oc",
        """-w=--workers -b=--bind -k=--worker-class -t=--timeout -c=--config --log-level --access-logfile --error-logfile
        --threads -n=--name --chdir -e=--env""",
        "-D=--daemon --reload --preload",
        "--log-level",
    ),
    "ts-node": (
        "ocsv",
        "-P=--project -O=--compiler-options -r=--require -e=--eval -D=--ignore-diagnostics --cwd",
        "-T=--transpile-only --transpileOnly=--transpile-only --esm --files --swc --typeCheck --pretty",
        "--pretty",
    ),
    "xcodebuild": (
        "o",
        """-scheme -project -workspace -destination -configuration -sdk -target -derivedDataPath -resultBundlePath -arch -testPlan
        -xcconfig -archivePath -exportPath -exportOptionsPlist""",
        "-quiet -verbose -json -allowProvisioningUpdates -skipPackagePluginValidation -showBuildSettings -list",
        "-quiet -verbose",
    ),
    **dict.fromkeys(
        ("http", "https", "xh", "xhs"),
        (
            "oc",
            """-a=--auth -A=--auth-type -s=--style -o=--output --session --session-read-only --verify --timeout --proxy --cert
            --cert-key --max-redirects -p=--print --pretty --format-options --raw --boundary --response-charset""",
            """-j=--json -f=--form --multipart -v=--verbose -h=--headers -b=--body -m=--meta -d=--download -c=--continue
            -F=--follow --check-status -I=--ignore-stdin --ignore-stdin --offline -q=--quiet -S=--stream --all -x=--compress
            --no-verify""",
            "--json --verbose --headers --body --meta --print --pretty --style --quiet --stream --all --format-options --output",
        ),
    ),
    "redis-cli": (
        "ocs",
        "-h -p -n -a -u --user --pass -i -s -r --cacert --cert --key --sni -t",
        "--raw --no-raw --csv --json -c --tls --insecure --scan --bigkeys --stat --no-auth-warning -2 -3 -e",
        "--raw --no-raw --csv --json --no-auth-warning",
    ),
    "rsync": (
        "ocl",
        """-e=--rsh -f=--filter --include --exclude --include-from --exclude-from --files-from --rsync-path --chmod --chown
        --bwlimit
        --timeout --port --password-file --partial-dir --backup-dir --suffix --max-size --min-size --log-file -T=--temp-dir
        --compare-dest --copy-dest --link-dest --out-format --info --contimeout -M=--remote-option""",
        """-a=--archive -v=--verbose -z=--compress -r=--recursive -n=--dry-run -q=--quiet -h=--human-readable -P -l=--links
        -L=--copy-links
        -p=--perms -t=--times -g=--group -o=--owner -D -u=--update -c=--checksum -i=--itemize-changes -H=--hard-links
        -R=--relative
        -x=--one-file-system -W=--whole-file -S=--sparse -b=--backup -m=--prune-empty-dirs -C=--cvs-exclude -d=--dirs -F
        --delete --delete-after --delete-before --delete-during --delete-excluded --progress --stats --partial --inplace
        --ignore-existing --existing --mkpath --no-perms --no-owner --no-group --numeric-ids --size-only -0=--from0""",
        "--verbose --quiet --human-readable --progress --stats --itemize-changes --info",
    ),
    "scp": (
        "oc",
        "-P -i -o -F -l -c -J -S -D -X",
        "-r -p -q -v -C -3 -4 -6 -B -T -O -s -A",
        "-q -v",
    ),
    # Where an option stands decides what it is for; only these matter nowhere.
    **dict.fromkeys(("ffmpeg", "ffprobe"), ("", "", "", "-hide_banner -nostats -stats")),
    "wget": (
        "oc",
        """-O=--output-document -P=--directory-prefix -o=--output-file --header --post-data --post-file --user --password
        -T=--timeout
        -t=--tries -U=--user-agent -A=--accept -R=--reject -l=--level -e=--execute -i=--input-file --limit-rate --method
        --body-data
        --ca-certificate --referer -D=--domains -w=--wait -Q=--quota --progress --max-redirect --load-cookies
        --save-cookies""",
        """-q=--quiet -c=--continue -r=--recursive -N=--timestamping -k=--convert-links -p=--page-requisites -nv=--no-verbose
        -nc=--no-clobber -np=--no-parent -nH=--no-host-directories -nd=--no-directories -S=--server-response -v=--verbose
        -m=--mirror
        -E=--adjust-extension --no-check-certificate --spider --show-progress -b=--background -x=--force-directories
        --content-disposition --trust-server-names -d=--debug""",
        "--quiet --no-verbose --verbose --show-progress --progress --server-response --debug",
    ),
    "jq": (
        "ocx",
        "-f=--from-file --indent -L",
        """-r=--raw-output -c=--compact-output -n=--null-input -e=--exit-status -s=--slurp -S=--sort-keys -j=--join-output
        -a=--ascii-output -C=--color-output -M=--monochrome-output -R=--raw-input --tab --unbuffered --seq --stream""",
        "--color-output --monochrome-output --unbuffered --tab --indent",
    ),
    **dict.fromkeys(
        ("get-content", "test-path"),
        ("oP", "-path -literalpath -totalcount -tail -encoding -delimiter", "-raw -wait", ""),
    ),
    "remove-item": (
        "oP",
        "-path -literalpath -include -exclude -filter -erroraction",
        "-recurse -force -confirm -whatif -verbose",
        "",
    ),
    "get-childitem": (
        "oP",
        "-path -literalpath -filter -include -exclude -depth -erroraction",
        "-recurse -force -file -directory -name -hidden",
        "",
    ),
    **dict.fromkeys(
        ("copy-item", "move-item", "rename-item"),
        (
            "oP",
            "-path -literalpath -destination -newname -filter -include -exclude -erroraction",
            "-recurse -force -passthru -confirm -verbose",
            "",
        ),
    ),
    "new-item": ("oP", "-path -name -itemtype -type -value -target", "-force", ""),
    **dict.fromkeys(
        ("set-content", "add-content", "out-file"),
        ("oP", "-path -literalpath -filepath -value -encoding -inputobject -width", "-force -nonewline -append -noclobber", ""),
    ),
    "select-string": (
        "oP",
        "-pattern -path -literalpath -context -encoding -include -exclude",
        "-simplematch -casesensitive -quiet -list -notmatch -allmatches -raw",
        "",
    ),
    **dict.fromkeys(
        ("invoke-webrequest", "invoke-restmethod"),
        (
            "oP",
            "-uri -outfile -method -headers -body -contenttype -timeoutsec -useragent -credential -proxy -form",
            "-usebasicparsing -skipcertificatecheck -passthru",
            "-usebasicparsing",
        ),
    ),
}
# PowerShell's aliases that no other program goes by.
CMDLETS = {
    "iwr": "invoke-webrequest", "irm": "invoke-restmethod", "gci": "get-childitem", "gc": "get-content", "sls": "select-string",
    "cpi": "copy-item", "mi": "move-item", "rni": "rename-item", "ri": "remove-item", "ni": "new-item", "ac": "add-content",
}  # fmt: skip
ALIASED = frozenset(CMDLETS.values())
# What the operands of PowerShell's commands are called when they are given by name, in order.
POSITIONS = {
    "select-string": ("-pattern", "-path"),
    "copy-item": ("-path", "-destination"),
    "move-item": ("-path", "-destination"),
    "rename-item": ("-path", "-newname"),
    "set-content": ("-path", "-value"),
    "add-content": ("-path", "-value"),
    "get-childitem": ("-path", "-filter"),
    "invoke-webrequest": ("-uri",),
    "invoke-restmethod": ("-uri",),
    "out-file": ("-filepath", "-encoding"),
}
ALIASES = {
    "pixi": {"r": "run", "i": "install"},
    "cabal": {
        f"{old}-{verb}": verb for old in ("v2", "new") for verb in ("build", "test", "run", "install", "bench", "repl", "update")
    },
}
SUBCOMMANDS = frozenset(("pixi", "stack", "cabal", "pulumi"))
TWO_LEVEL = frozenset(
    f"{name} {sub}"
    for name, subs in {
        "cargo": "nextest",
        "prisma": "migrate db",
        "glab": "mr issue ci repo",
        "pulumi": "stack config",
        "swift": "package",
    }.items()
    for sub in subs.split()
)
# What turbo does itself; any other word is a task to run.
TURBO_OWN = frozenset(
    """run prune login logout link unlink bin daemon gen generate ls query scan telemetry watch boundaries info config clone
    completion devtools docs""".split()
)
GLOBAL_VALUES = {"swift": "", "pulumi": "", "pdm": "", "turbo": "--cwd"}
# `swift test --package-path x`, `pulumi up -C x`: options behind the subcommand that set the directory.
DIRECTORY = frozenset(("swift --package-path", "pulumi -C", "pulumi --cwd", "turbo --cwd"))
