"""[H] Option tables of build tools, package managers of systems, cloud tools and interpreters: data only, see option_tables.py.

Each is written from the program's own reference. What is left out keeps its order and its place in the identity.
"""

from __future__ import annotations

_MVN = (
    "oc",
    "-f=--file -s=--settings -gs -pl=--projects -P=--activate-profiles -T=--threads -rf=--resume-from -l=--log-file --color",
    """-q=--quiet -B=--batch-mode --batch-mode -ntp=--no-transfer-progress -e=--errors -X=--debug -o=--offline
    -U=--update-snapshots
    -am=--also-make -amd=--also-make-dependents -fae=--fail-at-end -fn=--fail-never -ff=--fail-fast -N=--non-recursive -V""",
    "--quiet --batch-mode --no-transfer-progress --errors --debug --color -V",
)
_GRADLE = (
    "o",
    """--tests -p=--project-dir -x=--exclude-task --console --warning-mode -b --build-file -c --settings-file
    -g=--gradle-user-home
    -I=--init-script --max-workers -Dorg""",
    """-q=--quiet -i=--info -d=--debug -w=--warn -s=--stacktrace -S=--full-stacktrace --offline --no-daemon --daemon
    --scan --no-scan
    --continue --parallel --no-parallel --build-cache --no-build-cache --rerun-tasks --refresh-dependencies -a --dry-run
    -m=--dry-run -t=--continuous --configuration-cache --no-configuration-cache --profile""",
    "--quiet --info --debug --warn --stacktrace --full-stacktrace --console --warning-mode",
)
_DOTNET = (
    "o",
    """-c=--configuration -f=--framework -r=--runtime -o=--output -v=--verbosity --filter --logger -l=--logger --project
    --settings
    -s=--settings --collect -p=--property --source --package --version --results-directory --blame-hang-timeout""",
    """--nologo -nologo --no-restore --no-build --no-dependencies --force --list-tests -t=--list-tests --self-contained --blame
    --tl --no-incremental""",
    "--nologo -nologo --verbosity --tl",
)
_APT = (
    "ocu",
    "-o=--option -t=--target-release -c=--config-file",
    """-y=--yes --assume-yes -q=--quiet --no-install-recommends --install-recommends -f=--fix-broken --fix-missing
    -m=--fix-missing
    --reinstall --purge --allow-downgrades --allow-unauthenticated -d=--download-only -s=--simulate --dry-run --no-upgrade
    --only-upgrade --autoremove --show-progress""",
    "--quiet --show-progress",
)
_AWS_VALUES = """--region --profile --output --endpoint-url --query --color --ca-bundle --cli-read-timeout
--cli-connect-timeout"""
_AWS_FLAGS = "--no-cli-pager --no-paginate --no-verify-ssl --debug --no-sign-request --no-cli-auto-prompt"
_CLOUD_SHOWN = "--output --color --no-cli-pager --query --debug"
_TERRAFORM_HELM = """-n=--namespace --kube-context --kubeconfig -f=--values --set --set-string --set-file --version --timeout
    --repo --post-renderer --description --history-max -o=--output"""

TABLES: dict[str, tuple[str, str, str, str]] = {
    "mvn": _MVN,
    "gradle": _GRADLE,
    **dict.fromkeys(("dotnet test", "dotnet build", "dotnet run", "dotnet restore", "dotnet publish", "dotnet pack"), _DOTNET),
    "cmake": (
        "o",
        """-S -B -G -A -T -C -D -U -P -E --build --target -t=--target --config -j=--parallel --parallel --preset
        --install --prefix
        --toolchain --log-level --component""",
        "-v=--verbose --verbose --fresh --clean-first -Wno-dev -Wdev --debug-output --trace",
        "--verbose --log-level -Wno-dev -Wdev",
    ),
    "ctest": (
        "o",
        """-R=--tests-regex -E=--exclude-regex -L=--label-regex -LE -j=--parallel --parallel -C=--build-config --timeout --preset
        --repeat -I --output-junit -O""",
        """-V=--verbose -VV --verbose --extra-verbose --output-on-failure -N=--show-only --show-only --rerun-failed
        --progress -Q=--quiet
        --quiet --stop-on-failure --no-tests""",
        "--verbose -VV --extra-verbose --output-on-failure --progress --quiet",
    ),
    "ninja": ("oc", "-j -k -l -f -t -d -w", "-v=--verbose --verbose --quiet -n", "--verbose --quiet -d"),
    **dict.fromkeys(
        ("apt-get install", "apt-get remove", "apt-get update", "apt-get upgrade", "apt install", "apt update"), _APT
    ),
    **dict.fromkeys(
        ("brew install", "brew upgrade", "brew uninstall", "brew reinstall"),
        (
            "ocu",
            "--appdir",
            "--cask --formula -q=--quiet -v=--verbose -f=--force --HEAD --build-from-source -s=--build-from-source --overwrite",
            "--quiet --verbose",
        ),
    ),
    **dict.fromkeys(
        ("poetry install", "poetry add", "poetry update", "poetry lock", "poetry build", "poetry remove"),
        (
            "oc",
            "--with --without --only -E=--extras --group -G=--group --source --python",
            """--no-root --sync --dry-run --all-extras --no-ansi --ansi -v -vv -vvv -q=--quiet -n=--no-interaction --no-cache
            --no-dev -D=--dev --dev -e=--editable --allow-prereleases --all-groups --compile --lock""",
            "--no-ansi --ansi -v --quiet",
        ),
    ),
    **dict.fromkeys(
        ("bundle install", "bundle update", "bundle check"),
        (
            "oc",
            "--path --gemfile --jobs -j=--jobs --retry --without --with --trust-policy --binstubs",
            "--quiet --verbose --local --frozen --deployment --full-index --clean --no-cache --redownload --conservative --all",
            "--quiet --verbose",
        ),
    ),
    "rspec": (
        "oc",
        """-f=--format -e=--example -t=--tag -P=--pattern --seed --order -I -r=--require -o=--out -E=--example-matches
        -O=--options""",
        "-d -b=--backtrace -c=--color --color --no-color --force-color -p=--profile --fail-fast --only-failures -n -w --dry-run",
        "--format --backtrace --color --no-color --force-color --profile",
    ),
    **dict.fromkeys(
        ("composer install", "composer update", "composer require", "composer remove", "composer dump-autoload"),
        (
            "oc",
            "--ignore-platform-req --prefer-install",
            """--no-dev --dev --no-scripts --no-plugins --no-progress --no-ansi --ansi -q=--quiet -v -vv -vvv -n=--no-interaction
            --prefer-dist --prefer-source --ignore-platform-reqs -o=--optimize-autoloader --optimize-autoloader -W --no-cache
            --with-all-dependencies --no-autoloader --dry-run""",
            "--no-progress --no-ansi --ansi --quiet -v",
        ),
    ),
    "phpunit": (
        "o",
        """--filter --group --exclude-group --testsuite -c=--configuration --bootstrap --colors --log-junit --coverage-html
        --coverage-clover --order-by --exclude-testsuite --cache-directory""",
        """--testdox --no-coverage --verbose -v=--verbose --debug --stop-on-failure --stop-on-error --no-progress --no-results
        --display-warnings --display-deprecations --no-configuration --do-not-cache-result""",
        "--colors --testdox --verbose --debug --no-progress --display-warnings --display-deprecations",
    ),
    "unittest": (
        "oc",
        "-k -s=--start-directory -p=--pattern -t=--top-level-directory --durations",
        "-v=--verbose --verbose -q=--quiet --quiet -f=--failfast -b=--buffer -c=--catch --locals",
        "--verbose --quiet --locals --durations",
    ),
    "playwright test": (
        "oc",
        """--reporter --project -g=--grep --grep-invert -c=--config -j=--workers --workers --retries --timeout --shard --output
        --trace --repeat-each --max-failures --global-timeout --update-snapshots""",
        "--headed --debug --ui --list --quiet -x --pass-with-no-tests --forbid-only --fully-parallel --last-failed -u --no-deps",
        "--reporter --quiet",
    ),
    **dict.fromkeys(
        ("helm upgrade", "helm install", "helm template", "helm uninstall", "helm lint", "helm rollback", "helm list"),
        (
            "oc",
            _TERRAFORM_HELM,
            """-i=--install --install --atomic --wait --dry-run --debug --create-namespace --force --reset-values --reuse-values
            --dependency-update --no-hooks --devel --cleanup-on-fail --skip-crds --wait-for-jobs -A=--all-namespaces""",
            "--debug --output",
        ),
    ),
    **dict.fromkeys(
        ("aws s3", "aws s3 ls", "aws s3 cp", "aws s3 sync", "aws s3 rm", "aws s3 mv", "aws s3 mb", "aws s3 rb"),
        (
            "o",
            _AWS_VALUES + " --include --exclude --acl --storage-class --sse --content-type --cache-control --metadata",
            _AWS_FLAGS
            + """ --recursive --dryrun --delete --quiet --human-readable --summarize --no-progress --only-show-errors
            --exact-timestamps --size-only --force --no-follow-symlinks""",
            _CLOUD_SHOWN + " --quiet --human-readable --summarize --no-progress --only-show-errors",
        ),
    ),
    "aws sts": ("o", _AWS_VALUES + " --role-arn --role-session-name --duration-seconds", _AWS_FLAGS, _CLOUD_SHOWN),
    **dict.fromkeys(
        ("gcloud", "gcloud compute", "gcloud auth", "gcloud config", "gcloud projects", "gcloud run", "gcloud container"),
        (
            "o",
            """--project --account --format --verbosity --zone --region --configuration --filter --limit --sort-by --image
            --billing-project --impersonate-service-account --cluster --machine-type --flags-file --log-http""",
            "-q=--quiet --quiet --async --no-user-output-enabled --user-output-enabled --no-launch-browser --all",
            "--format --verbosity --user-output-enabled",
        ),
    ),
    **dict.fromkeys(
        ("az", "az group", "az account", "az login", "az vm", "az aks", "az acr", "az webapp", "az storage"),
        (
            "o",
            """-g=--resource-group -n=--name -o=--output --output -l=--location --subscription --query --ids --tenant
            -u=--username
            -p=--password --tags --sku""",
            "--only-show-errors --verbose --debug --no-wait -y=--yes --yes --use-device-code --service-principal --identity",
            "--output --query --only-show-errors --verbose --debug",
        ),
    ),
    "psql": (
        "oc",
        """-c=--command -d=--dbname -f=--file -h=--host -p=--port -U=--username -v=--set -F=--field-separator -o=--output
        -P=--pset
        -L=--log-file -R=--record-separator""",
        """-A=--no-align -t=--tuples-only -q=--quiet -w=--no-password -W=--password -x=--expanded -X=--no-psqlrc
        -1=--single-transaction
        -l=--list -a=--echo-all -e=--echo-queries -b=--echo-errors -E=--echo-hidden -H=--html --csv -n -s -S -z -0""",
        """--no-align --tuples-only --quiet --expanded --echo-all --echo-queries --echo-errors --html --csv --pset
        --field-separator""",
    ),
    "go build": (
        "od",
        "-o -tags -ldflags -gcflags -asmflags -mod -p -buildmode -modfile -overlay -pgo -coverpkg -covermode -pkgdir -toolexec",
        "-v -x -race -a -n -trimpath -work -cover -msan -asan -buildvcs -json",
        "-v -json",
    ),
    "node": (
        "osv",
        "-e=--eval -p=--print -r=--require --import --loader --env-file --max-old-space-size --test-name-pattern --test-reporter "
        "--conditions -C --stack-size --input-type",
        """--no-warnings --trace-warnings --inspect --inspect-brk --test --watch -c=--check --check --experimental-strip-types
        --expose-gc --enable-source-maps --trace-deprecation --no-deprecation --preserve-symlinks --trace-uncaught -i
        --experimental-vm-modules --experimental-sqlite --experimental-test-coverage""",
        """--no-warnings --trace-warnings --trace-deprecation --no-deprecation --trace-uncaught --test-reporter
        --enable-source-maps""",
    ),
    **dict.fromkeys(
        ("deno run", "deno test"),
        (
            "osv",
            "--config -c=--config --import-map --lock --env-file --cert --seed --location --v8-flags --filter -L=--log-level",
            """-q=--quiet --quiet -A=--allow-all --allow-all --allow-net --allow-read --allow-write --allow-env --allow-run
            --allow-ffi --allow-sys --allow-import --no-check --check --watch --cached-only --no-lock --no-remote --unstable
            -r=--reload --reload --no-prompt --inspect --frozen --node-modules-dir""",
            "--quiet --log-level",
        ),
    ),
    "artisan": (
        "o",
        "--path --database --class --env --step --seeder --realpath --port --host --queue --tries --filter",
        """--force --no-ansi --ansi -q=--quiet --quiet -v -vv -vvv -n=--no-interaction --no-interaction --seed --pretend
        --graceful""",
        "--no-ansi --ansi --quiet -v -vv -vvv",
    ),
}
# More spellings: program -> {subcommand: the one spelling}.
ALIASES = {
    "npm": {
        "remove": "uninstall",
        "r": "uninstall",
        "unlink": "uninstall",
        "clean-install": "ci",
        "up": "update",
        "in": "install",
    },
    "composer": {"i": "install", "u": "update", "update": "update", "r": "require"},
    "pnpm": {"rm": "remove", "un": "remove", "uninstall": "remove", "up": "update"},
    "bundle": {"i": "install"},
    "helm": {"ls": "list", "un": "uninstall", "del": "uninstall", "delete": "uninstall"},
    "dotnet": {},
}
# What a bare call of a program means.
BARE = {"yarn": "install", "bundle": "install"}
# `docker image rm` and the short form that means the same.
DOCKER_SHORT = {
    ("image", "rm"): "rmi",
    ("image", "ls"): "images",
    ("image", "list"): "images",
    ("container", "ls"): "ps",
    ("container", "list"): "ps",
    ("container", "rm"): "rm",
    ("container", "logs"): "logs",
    ("container", "kill"): "kill",
    ("container", "restart"): "restart",
}
# Short and singular names of kubectl's resources.
RESOURCES = {
    "po": "pods", "pod": "pods", "svc": "services", "service": "services", "deploy": "deployments", "deployment": "deployments",
    "ns": "namespaces", "namespace": "namespaces", "no": "nodes", "node": "nodes", "cm": "configmaps", "configmap": "configmaps",
    "secret": "secrets", "ing": "ingresses", "ingress": "ingresses", "sts": "statefulsets", "statefulset": "statefulsets",
    "ds": "daemonsets", "daemonset": "daemonsets", "rs": "replicasets", "replicaset": "replicasets",
    "pvc": "persistentvolumeclaims",
    "pv": "persistentvolumes", "job": "jobs", "cj": "cronjobs", "cronjob": "cronjobs", "ev": "events", "event": "events",
    "sa": "serviceaccounts", "serviceaccount": "serviceaccounts", "hpa": "horizontalpodautoscalers",
    "crd": "customresourcedefinitions",
}  # fmt: skip
