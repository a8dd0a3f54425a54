#!/bin/bash
# links.sh <tvmcc> <source> <work folder>
#
# Links that somebody put in the way: what they point to is neither read, nor written, nor removed.
# Unpacking over them, build folders, folders of archives, and a link that comes and goes meanwhile.
tvmcc=$1 source=$2 work=$3
. "$(dirname "$0")/../lib.sh"
enter "$work"
model=$source/examples/digits/digits.onnx
mkdir -p victim/sub && echo precious >victim/a.txt && echo more >victim/sub/b.txt && cp -r victim before
intact() { diff -r victim before || die "$*: what the link points to changed"; }
quiet "$tvmcc" "$model" -mcpu=x86-64 -o digits.tar

# ---- unpack: the link is replaced ------------------------------------------------------------------
for target in ../victim "$work/victim" ../victim/a.txt nowhere digits; do
    rm -rf out && mkdir out && ln -s "$target" out/digits
    refused 74 "is there already" "$tvmcc" unpack digits.tar -C out
    [ -L out/digits ] || die "unpack without --force replaced a link to $target"
    quiet "$tvmcc" unpack digits.tar -C out --force
    intact "unpack --force over a link to $target"
    [ ! -L out/digits ] && [ "$(ls -A out)" = digits ] || die "a link to $target: $(ls -lA out)"
    quiet "$tvmcc" diff digits.tar out/digits
done

# A tree with links in it is replaced, they with it; a link on the way there is the user's wish.
rm -rf out && mkdir -p out/digits/x && ln -s ../../victim out/digits/link && ln -s "$work/victim" out/digits/x/y
quiet "$tvmcc" unpack digits.tar -C out --force
intact "unpack --force over a folder with links"
ln -s out out.link && quiet "$tvmcc" unpack digits.tar -C out.link --force
[ -L out.link ] && [ "$(ls -A out)" = digits ] || die "unpack below a link"

# The hidden folder is there already, as a link.
rm -rf out && mkdir out
(for i in 0 1 2; do ln -s ../victim "out/.digits.tmp-$BASHPID-$i"; done
    exec "$tvmcc" unpack digits.tar -C out --force >log 2>&1) || die "links in place of the hidden folder"
intact "a link in place of the hidden folder"

# A folder that turns into a link and back while it is replaced.
rm -rf out && mkdir -p out/digits
(while [ ! -e stop ]; do
    mv -T out/digits out/moved; ln -sn ../victim out/digits; rm -f out/digits; mv -T out/moved out/digits
done) 2>log.swap &
for ((i = 0; i < 20; i++)); do "$tvmcc" unpack digits.tar -C out --force >log 2>&1; done
touch stop && wait
intact "a race"

# ---- folders that are read ---------------------------------------------------------------------------
rm -rf out && mkdir out && quiet "$tvmcc" unpack digits.tar -C out
ln -s ../../victim/a.txt out/digits/note.txt
for command in audit inspect; do
    refused 1 "member 'note.txt' is not a regular file" "$tvmcc" $command out/digits
done
refused 2 "member 'note.txt' is not a regular file" "$tvmcc" diff digits.tar out/digits
rm out/digits/note.txt && ln -s ../../victim out/digits/notes
refused 1 "member 'notes' is not a regular file" "$tvmcc" audit out/digits
ln -s out/digits good && rm out/digits/notes && quiet "$tvmcc" audit good

# ---- build folders -----------------------------------------------------------------------------------
if command -v ninja >/dev/null; then
    cat >manifest.yaml <<'END'
schema: tvm-manifest/1
hosts: {here: {triple: x86_64-linux-gnu, mcpu: x86-64}}
targets: {cpu: {kind: llvm}}
pairs: {here: {host: here, target: cpu}}
models: {digits: {source: digits.onnx, pairs: [here]}}
END
    cp "$model" digits.onnx
    touch victim/x.tmp-1-1 before/x.tmp-1-1
    mkdir build && ln -s ../victim build/link && ln -s ../victim/a.txt build/.tvmcc_lock
    refused 74 ".tvmcc_lock" "$tvmcc" build -C build
    intact "a link in place of the lock"
    rm build/.tvmcc_lock && printf b >build/.tvmcc_lock # the last build was killed: temporaries are swept
    ln -s ../victim/a.txt build/.tvmcc_probe
    quiet "$tvmcc" build -C build
    intact "temporaries are swept"
    echo x >digits.onnx
    "$tvmcc" build -C build >log 2>&1 && die "a broken model"
    intact "a build that fails"
fi

# ---- temporary files ---------------------------------------------------------------------------------
# A command that is repeated puts a link where its messages were: they are ours, what it points to is not.
echo "a secret" >secret && cp "$model" digits.onnx
cat >launcher.sh <<END
#!/bin/sh
for name in .messages messages ../messages; do ln -sf "$work/secret" \$name; done
echo "what it says" >&2
exit 3
END
chmod +x launcher.sh
refused 1 "what it says" "$tvmcc" repro --launcher "$work/launcher.sh" -- digits.onnx -c
grep -q "a secret" log && die "repro shows what a link points to"

# What is linked, read again and run by its name lies where nobody else may write, whatever the umask.
mkdir tmp bin
cat >bin/cc <<END
#!/bin/sh
for f; do [ "\$last" != -o ] || stat -c %a "\$(dirname "\$f")" >>"$work/folders"; last=\$f; done
exec $(command -v cc) "\$@"
END
chmod +x bin/cc
quiet "$tvmcc" "$model" -c -mcpu=x86-64 -o digits.o
(umask 0 && export TMPDIR=$work/tmp PATH=$work/bin:$PATH && quiet "$tvmcc" verify digits.o \
    --inputs "$source/examples/digits/inputs.npz" --expect "$source/examples/digits/outputs.npz" --rtol 1e-4 &&
    "$tvmcc" "$model" -mcpu=x86-64 --emit=so -o - >digits.so) || die "temporary files"
quiet "$tvmcc" inspect digits.so
[ "$(cat folders)" = "700
700" ] && [ -z "$(ls -A tmp)" ] || die "temporary files in a folder of everybody: $(cat folders; ls -lA tmp)"
cd / && rm -rf "$work"
