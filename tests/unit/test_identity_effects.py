"""What commands may change: the table that freshness goes by."""

from __future__ import annotations

import pytest
from projectmem_gate.identify import identify

ROOT = "/srv/acme"

NOTHING = [
    "ls -la", "grep -rn x src", "git status", "git diff HEAD~1", "git log --oneline -5", "git branch", "git stash list",
    "git remote -v", "git config --get user.name", "pytest -q", "python -m pytest tests", "go test ./...", "cargo test",
    "cargo clippy", "npm test", "npm run lint", "npm run typecheck", "bun run test:ci", "mise run lint", "make test",
    "make check", "ruff check .", "mypy src", "eslint src", "tsc --noEmit", "npx tsc --noEmit", "uv run pytest",
    "prettier --check .", "gofmt -l .", "black --check src", "find . -name '*.py'", "ps aux", "which node", "echo hi",
    "sleep 5", "true", "node --version", "terraform plan", "terraform validate", "kubectl get pods", "docker ps",
    "docker compose logs web", "gh pr view 5", "gh run list", "gh api repos/a/b/pulls", "curl -s https://example.com",
    "python -c 'print(1)'", "node -e 'console.log(1)'", "python - <<'EOF'\nprint(open(\"a\").read())\nEOF",
    "go vet ./...", "npm view react version", "npm outdated", "pip list", "python manage.py test",
    "./tests/runtests.py queries", "golangci-lint run", "some-tool --help", "projectmem failures", "cd src && ls",
    "X=1", "test -f a && echo yes",
]  # fmt: skip
GIVES = [
    ("rm -rf dist", {("edit", "dist"), ("edit", "dist/**")}),
    # files under no plain name, by the patterns that they fit
    ("rm gen/*.py", {("edit", ""), ("edit", "gen/*.py")}),
    ("rm -f a.py gen/{a,b}.py", {("edit", "a.py"), ("edit", ""), ("edit", "gen/*.py")}),
    ('for f in gen/*.py x.py; do sed -i s/a/b/ "$f"; done', {("edit", ""), ("edit", "gen/*.py"), ("edit", "x.py")}),
    ('rm "$X/a.py"', {("edit", "")}),
    ('rm gen/"$X".py', {("edit", ""), ("edit", "gen/*.py")}),
    ("find gen -name '*.py' -delete", {("edit", ""), ("edit", "gen/**/*.py")}),
    ("find . -name '*.pyc' -delete", {("edit", "")}),
    ("find gen -name '*.py' -exec rm {} +", {("edit", ""), ("edit", "gen/**/*.py")}),
    ("grep -rl X gen | xargs sed -i s/X/Y/", {("edit", ""), ("edit", "gen/**")}),
    ("grep -rl X . | xargs sed -i s/X/Y/", {("edit", "")}),
    ("git rm -r gen", {("edit", "gen"), ("git", "rm")}),
    ("perl -0777pi -e 's/a/b/' a.py", {("edit", "a.py")}),
    ("perl -Ilib -ne 'print' a.py", set()),
    ("dd if=a.bin of=b.bin", {("edit", "b.bin")}),
    ("python -c \"out='gen/a'; open(out, 'w').write('x')\"", {("edit", "gen/a")}),
    ("python - <<'EOF'\nimport pathlib\nq = pathlib.Path('src/a.py')\nq.write_text(q.read_text())\nEOF", {("edit", "src/a.py")}),
    ("python -c \"a='x.py'; b='y.py'; open(b, 'w').write(open(a).read())\"", {("edit", "y.py")}),
    ("jq . a.json | sponge a.json", {("edit", "a.json")}),
    ("tar xf a.tar -C lib", {("any", "tar"), ("edit", "lib")}),
    ("unzip a.zip -d lib", {("any", "unzip"), ("edit", "lib")}),
    ("black gen", {("edit", "gen")}),
    ("ruff format gen src", {("edit", "gen"), ("edit", "src")}),
    ("terraform -chdir=infra fmt", {("edit", ""), ("edit", "infra")}),
    ("sudo chown -R me node_modules", {("edit", "me"), ("edit", "node_modules")}),
    ("npx jest --clearCache", {("build", "jest cache")}),
    ("cd src && rm a.py", {("edit", "src/a.py")}),
    ("mv a.py b.py", {("edit", "a.py"), ("edit", "b.py")}),
    ("mv -t lib a.py", {("edit", "a.py"), ("edit", "lib"), ("edit", "lib/a.py")}),
    # what is copied or linked is only read
    ("cp src/gen/a.ts /tmp/x", {("edit", "/tmp/x")}),
    ("cp -r src/gen out", {("edit", "out")}),
    ("cp a.ts b.ts lib", {("edit", "lib"), ("edit", "lib/a.ts"), ("edit", "lib/b.ts")}),
    ("cp a.ts lib/", {("edit", "lib"), ("edit", "lib/a.ts")}),
    ("cp x/a.ts .", {("edit", "a.ts")}),
    ("cp -t lib a.ts b.ts", {("edit", "lib"), ("edit", "lib/a.ts"), ("edit", "lib/b.ts")}),
    ("cp --target-directory=lib a.ts", {("edit", "lib"), ("edit", "lib/a.ts")}),
    ("cp .env.example .env", {("edit", ".env"), ("env", ".env")}),
    ('cp a.ts "$DIR"', {("edit", "")}),
    ("rsync -a --exclude node_modules src/gen/ /tmp/q/", {("edit", "/tmp/q")}),
    ("rsync -a --remove-source-files src/gen/ out", {("edit", "src/gen"), ("edit", "src/gen/**"), ("edit", "out")}),
    ("rsync -an src/ out", set()),
    ("rsync -az dist/ u@h:/srv/", {("remote", "rsync")}),
    ("ln -s src/gen/a.ts x.ts", {("edit", "x.ts")}),
    ("ln -s src/gen/a.ts", {("edit", "a.ts")}),
    ("install -m 755 a bin/a", {("edit", "bin/a")}),
    ("mkdir -p src/new", {("edit", "src/new")}),
    ("sed -i 's/a/b/' src/a.py", {("edit", "src/a.py")}),
    ("sed -i '' 's/a/b/' src/a.py", {("edit", "src/a.py")}),
    ("sed -n '1,5p' src/a.py", {("read", "src/a.py")}),
    ("perl -pi -e 's/a/b/' src/a.py", {("edit", "src/a.py")}),
    ("cat src/a.py", {("read", "src/a.py")}),
    ("cat src/a.py | head -5", {("read", "src/a.py")}),
    ("cat > src/a.py <<'EOF'\nx\nEOF", {("edit", "src/a.py")}),
    ("echo x >> notes.md", {("edit", "notes.md")}),
    ("npm test > out.log 2>&1", {("edit", "out.log")}),
    ("npm test 2>&1 | tee out.log", {("edit", "out.log")}),
    ("echo A=1 > .env", {("edit", ".env"), ("env", ".env")}),
    ("git checkout -- src/a.py", {("edit", "src/a.py")}),
    ("git restore src/a.py", {("edit", "src/a.py")}),
    ("git checkout main", {("checkout", "")}),
    ("git pull --rebase", {("checkout", "")}),
    ("git stash", {("checkout", "")}),
    ("git reset --hard HEAD~1", {("checkout", "")}),
    ("git reset HEAD a.py", {("git", "reset")}),
    ("git add -A", {("git", "add")}),
    ("git commit -m x", {("git", "commit")}),
    ("gh pr checkout 5", {("checkout", "")}),
    ("npm install", {("install", "npm")}),
    ("npm ci", {("install", "npm")}),
    ("pip install requests", {("install", "pip")}),
    ("python -m pip install requests", {("install", "pip")}),
    ("uv sync", {("install", "uv")}),
    ("uv pip install x", {("install", "uv")}),
    ("go mod tidy", {("install", "go")}),
    ("cargo add serde", {("install", "cargo")}),
    ("sudo apt-get install -y jq", {("install", "apt-get")}),
    ("brew install jq", {("install", "brew")}),
    ("python -m venv .venv", {("install", "venv")}),
    ("gh auth login", {("login", "gh")}),
    ("aws sso login", {("login", "aws")}),
    ("docker login", {("login", "docker")}),
    ("aws --profile p eks update-kubeconfig --name c", {("login", "aws")}),
    ("gcloud container clusters get-credentials c --zone z", {("login", "gcloud")}),
    ("az aks get-credentials -n x", {("login", "az")}),
    ("kubectl config use-context dev", {("login", "kubectl")}),
    ("kubectl config view", set()),
    ("npm login", {("login", "npm")}),
    ("docker compose up -d db", {("service", "db")}),
    ("systemctl restart postgresql", {("service", "systemctl")}),
    ("psql -c 'create table x ()'", {("service", "psql")}),
    ("npm run build", {("build", "npm build")}),
    ("make build", {("build", "make build")}),
    ("go build ./...", {("build", "go build")}),
    ("cargo build", {("build", "cargo build")}),
    ("docker build -t a .", {("build", "docker build")}),
    ("npm run format", {("edit", "")}),
    ("mise run fmt", {("edit", "")}),
    ("gofmt -w src/a.go", {("edit", "src/a.go")}),
    ("ruff check --fix src/a.py", {("edit", "src/a.py")}),
    ("eslint --fix src/a.ts", {("edit", "src/a.ts")}),
    ("prettier --write src/a.ts", {("edit", "src/a.ts")}),
    ("gh pr create --title x --body y", {("remote", "gh")}),
    ("curl -X POST https://example.com -d a=1", {("remote", "curl")}),
    ("curl -o data.json https://example.com", {("edit", "data.json")}),
    ("ssh host 'systemctl restart x'", {("remote", "ssh")}),
    ("ssh host 'ls /x'", set()),
    ("export TOKEN=1", {("env", "TOKEN")}),
    ("python migrate.py", {("any", "python")}),
    ("./deploy.sh", {("any", "./deploy.sh")}),
    ("frobnicate x", {("any", "frobnicate")}),
    ("make", {("any", "make")}),
    ("find . -name '*.pyc' -delete", {("edit", "")}),
    ("python -c \"open('src/a.py','w').write('x')\"", {("edit", "src/a.py")}),
    ("python - <<'EOF'\nimport subprocess\nsubprocess.run(['x'])\nEOF", {("any", "python")}),
    ("node -e \"require('fs').writeFileSync('a.json', '1')\"", {("edit", "a.json")}),
]


def _effects(command: str) -> set[tuple[str, str]]:
    action = identify("Bash", {"command": command}, root=ROOT, cwd=ROOT)
    return {effect for part in action.parts for effect in part.effects}


@pytest.mark.parametrize("command", NOTHING)
def test_looking_and_verifying_change_nothing(command: str) -> None:
    """At most they read."""
    assert {e for e in _effects(command) if e[0] != "read"} == set()


@pytest.mark.parametrize(("command", "expected"), GIVES)
def test_changing_commands(command: str, expected: set[tuple[str, str]]) -> None:
    """Each gives exactly what it may change."""
    assert _effects(command) == expected


def test_export_counts_only_where_it_is_all_there_is() -> None:
    """`export X=1 && pytest` sets X for that call alone, and the key of pytest holds it."""
    assert not any(e[0] == "env" for e in _effects("export X=1 && pytest"))


@pytest.mark.parametrize(
    ("tool", "given", "expected"),
    [
        ("Edit", {"file_path": "/srv/acme/a.py", "old_string": "a", "new_string": "b"}, {("edit", "a.py")}),
        ("Write", {"file_path": "/srv/acme/.env", "content": "A=1"}, {("edit", ".env"), ("env", ".env")}),
        ("Read", {"file_path": "/srv/acme/a.py"}, {("read", "a.py")}),
        ("Grep", {"pattern": "x", "path": "/srv/acme/src"}, set()),
        (
            "apply_patch",
            {"patch": "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@\n-x\n+y\n*** Delete File: c.py\n"},
            {("edit", "a.py"), ("edit", "b.py"), ("edit", "c.py")},
        ),
        ("mcp__linear__create_issue", {"title": "x"}, {("remote", "linear")}),
        ("mcp__linear__get_issue", {"id": "x"}, {("mcp", "linear")}),
        ("TodoWrite", {"todos": []}, set()),
        ("edit", {"command": "edit 'a' 'b'"}, {("edit", "")}),
        ("create", {"command": "create repro.py"}, {("edit", "repro.py")}),
    ],
)
def test_tools(tool: str, given: object, expected: set[tuple[str, str]]) -> None:
    """Edits, reads and calls of every harness."""
    action = identify(tool, given, root=ROOT, cwd=ROOT)
    assert {effect for part in action.parts for effect in part.effects} == expected
