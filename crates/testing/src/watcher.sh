# Cleans up a folder when the process that made it is gone, however it ended.
# Standard input is a pipe that only that process holds open. A line on it is the number of the signal
# that ends what runs in the folder; $1 is the folder.
signal=9
while read -r line; do signal=$line; done

# Whatever works in the folder is known by its current directory: no process id can go stale.
working() {
    find /proc/[0-9]*/cwd -maxdepth 0 \( -lname "$1" -o -lname "$1/*" \) 2>/dev/null | cut -d/ -f3
}

rounds=0
while pids=$(working "$1") && [ -n "$pids" ]; do
    # One that was paused does not end before it goes on; one that does not end within seconds is killed.
    if [ "$rounds" = 0 ]; then kill "-$signal" $pids; kill -CONT $pids; fi
    if [ "$rounds" -ge 150 ]; then kill -9 $pids; fi
    rounds=$((rounds + 1))
    sleep 0.02
done 2>/dev/null
rm -rf "$1"
