#!/usr/bin/env bash
# Every view of the report in headless Chromium: see report_in_browser.py. Skipped where there is no
# Chromium with its driver or no Selenium (Debian: chromium chromium-driver python3-selenium).
#
# Skipped as well while other work keeps the machine busy, as a browser then takes minutes;
# BROWSER_TEST=1 runs it all the same.
#
# AXE_JS: a copy of axe-core's axe.min.js; with it the pages are also checked for accessibility
# (accessibility.py says where to get one).
set -u
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." || exit 4
program=${SHARDWISE:-$PWD/build/release/shardwise}
python=/usr/bin/python3
for driver in /usr/bin/chromium /usr/bin/chromedriver "$python"; do
  [[ -x $driver ]] || { echo "skipped: there is no $driver"; exit 77; }
done
"$python" -c 'import selenium' 2>/dev/null || { echo 'skipped: there is no python3-selenium'; exit 77; }
read -r load _ </proc/loadavg
if [[ ${BROWSER_TEST-} != 1 ]] && ((${load%.*} > 3 * $(nproc))); then
  echo "skipped: the machine is busy (load $load); BROWSER_TEST=1 runs it all the same"
  exit 77
fi

pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT
report() {  # NAME COMMAND...: its report as NAME.html
  "$program" "${@:2}" --report "$pages/$1.html" >/dev/null || { echo "no report: ${*:2}"; exit 1; }
}
report fit fit 8b --gpus 2x24GB --samples 1000
report nofit fit 70b --gpus 2x24GB --method full
report compare compare 13b --gpus 8xA100-80GB --plan dp=8,zero=3 --plan tp=8 --plan pp=4,dp=2 \
  --plan dp=8,zero=1 --plan tp=3
report plan plan llama-3.2-1b --gpus 8xH100-SXM
report schedules compare llama-3.2-1b --gpus 4xA100-80GB --method pretrain --plan pp=4,ga=8 --schedules
report simulate simulate 13b --gpus 8xA100-80GB --plan pp=4,dp=2,ga=8 --tokens 1000000
report why simulate 8b --gpus 16xH100-SXM --method pretrain --plan tp=2,pp=2 --explain --why-not tp=8,pp=4 \
  --why-not dp=16,zero=0
report scaling plan llama-3.2-1b --gpus 8..128xH100-SXM
report front plan llama-3.1-8b --gpus 8xH100-SXM --pareto
report calibration calibrate import catalog/runs/c_microbench.json \
  docs/example/all_reduce_2x4090.log --only all_reduce_2x4090 --out "$pages/profile.json" --peer-access no
report large simulate llama-3.1-405b --gpus 16384xH100-SXM --method pretrain --batch 16384 \
  --plan dp=64,tp=2,cp=4,pp=32,vpp=2,schedule=zb-v,zero=2,layers=1/62x2/1
report validate validate catalog/runs/c_peft.json catalog/runs/b_megatron_readme.json \
  catalog/runs/b_internevo.json
cat >"$pages/study.json" <<'JSON'
{"name": "sweep", "base": {"method": "lora", "batch": 16},
 "axes": {"model": ["8b", "nobody"], "gpus": ["2xRTX-4090", "2xRTX-3090", "2xA100-80GB", "2xRTX-2080-Ti"]}}
JSON
report sweep sweep "$pages/study.json" --out "$pages/sweep.sqlite"
"$python" tests/browser/report_in_browser.py "$pages" tests/planner/hostile_names.json "$program"
