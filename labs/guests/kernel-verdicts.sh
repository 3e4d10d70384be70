# One repetition of each family ends in a verdict, in virtual time.
cd /tmp
sim="--testbed /configs/testbeds/sim.toml"
step "run --plan mad" /tools/validator run $sim --plan mad
step "run --plan rc" /tools/validator run $sim --plan rc
step "run --plan kernel" /tools/validator run $sim --plan /configs/plans/kernel.toml \
    --set 'testbed.ports.line_rate="100M"'
for log in /tmp/validator-verifier-*; do [ -e "$log" ] && tail -n 40 "$log"; done
echo "lab: done"
