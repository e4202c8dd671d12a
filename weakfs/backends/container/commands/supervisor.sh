# The first process of a container, or one started in a running container: runs the commands that its host requests,
# and kills them when the host exits.
#
# $1 is a directory in which the host creates a FIFO for requests and, for each command, a directory with a script and
# FIFOs for its input, its two outputs and its status. The host opens the FIFO for requests before it starts this
# script, so end-of-file means that the host has exited. $2 is a marker in the environment of each command, by which
# the command's processes are found.
#
# The status FIFO of a command stays open until the command ends. The script writes an empty line to it when it begins;
# the next line is the exit code.
control=$1
mark=$2
# If opened for reading only, the FIFO would block if the host has already exited.
exec 4<>"$control/requests" 3<"$control/requests" 4>&- || exit 1
while IFS=' ' read -r request rest <&3; do
    case $request in
    run)
        (
            exec 3<&- 4>"$control/$rest/status"
            # In a subshell, because some shells redirect their own descriptors while a command runs.
            (
                export WEAKFS_COMMAND="$mark$rest"
                # If opened for reading only, the FIFO would block if the host has already closed it.
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
# When the first process of a container exits, all others are killed. In a running container, kill the process group.
[ $$ -eq 1 ] || kill -9 0
