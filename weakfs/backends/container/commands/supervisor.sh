# The first process of a container, or one beside it: runs what its host asks for, and nothing outlives that host.
#
# $1 is a directory in which the host makes one FIFO for requests and, for each command, a directory with a script, its
# input, and FIFOs for its two outputs and its status. The host opened the requests before it started this; their end
# is the end of that host. $2 marks what commands start, in their environment.
#
# The status of a command is open until the command has ended. An empty line says that it has begun; the script writes
# it. The next line is the exit code.
control=$1
mark=$2
# Opening for reading alone would wait for a host that is gone already.
exec 4<>"$control/requests" 3<"$control/requests" 4>&- || exit 1
while IFS=' ' read -r request rest <&3; do
    case $request in
    run)
        (
            exec 3<&- 4>"$control/$rest/status"
            # A shell of its own, because some shells redirect their own descriptors for the time of a command.
            (
                export WEAKFS_COMMAND="$mark$rest"
                # Opening it for reading alone would wait for a writer, and the host may have closed it again.
                [ ! -p "$control/$rest/in" ] || exec 5<>"$control/$rest/in"
                exec /bin/sh "$control/$rest/script" \
                    <"$control/$rest/in" >"$control/$rest/out" 2>"$control/$rest/err" 5>&-
            )
            echo $? >&4
        ) &
        ;;
    kill)
        kill $rest 2>/dev/null
        ;;
    esac
done
# With the first process of a container everything in it ends; one beside others ends with all that it started.
[ $$ -eq 1 ] || kill -9 0
