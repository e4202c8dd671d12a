# The first process of a container, or one beside it: runs what its host asks for, and nothing outlives that host.
#
# $1 is a directory in which the host makes one FIFO for requests and, for each command, a directory with a script and
# FIFOs for its two outputs and its exit code. Opening the requests waits for a host; their end is the end of that host.
control=$1
while :; do
    exec 3<"$control/requests" || exit 1
    while IFS=' ' read -r request rest <&3; do
        case $request in
        run)
            (
                exec 3<&-
                /bin/sh "$control/$rest/script" <"$control/$rest/in" >"$control/$rest/out" 2>"$control/$rest/err"
                echo $? >"$control/$rest/status"
            ) &
            ;;
        kill)
            kill -9 $rest 2>/dev/null
            ;;
        esac
    done
    # The first process is spared by -1 and waits for another host; one beside others ends with all that it started.
    if [ $$ -eq 1 ]; then kill -9 -1 2>/dev/null; else kill -9 0; fi
done
